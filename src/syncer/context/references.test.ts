import { expect } from 'chai'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import { ingressBackends, referencesOf } from './references.ts'

const refs = (spec: Partial<PodSpec>): string[] =>
  referencesOf({ containers: [], ...spec }).map(({ resource, name }) => `${resource}/${name}`)

describe('what a pod refers to', () => {
  for (const { title, spec, expected } of [
    { title: 'the default ServiceAccount', spec: {}, expected: ['serviceaccounts/default'] },
    { title: 'its own ServiceAccount', spec: { serviceAccountName: 'robot' }, expected: ['serviceaccounts/robot'] },
    {
      title: 'pull secrets',
      spec: { serviceAccountName: 'r', imagePullSecrets: [{ name: 'pull' }] },
      expected: ['serviceaccounts/r', 'secrets/pull'],
    },
    {
      title: 'environment of containers and init containers, once each',
      spec: {
        serviceAccountName: 'r',
        containers: [
          {
            name: 'c',
            env: [{ name: 'a', valueFrom: { secretKeyRef: { name: 's' } } }],
            envFrom: [{ configMapRef: { name: 'm' } }, { secretRef: { name: 's' } }],
          },
        ],
        initContainers: [{ name: 'i', env: [{ name: 'a', valueFrom: { configMapKeyRef: { name: 'n' } } }] }],
      },
      expected: ['serviceaccounts/r', 'secrets/s', 'configmaps/m', 'configmaps/n'],
    },
    {
      title: 'volumes, projected ones included',
      spec: {
        serviceAccountName: 'r',
        volumes: [
          { name: 'a', configMap: { name: 'm' } },
          { name: 'b', secret: { secretName: 's' } },
          { name: 'c', projected: { sources: [{ configMap: { name: 'n' } }, { secret: { name: 't' } }] } },
        ],
      },
      expected: ['serviceaccounts/r', 'configmaps/m', 'secrets/s', 'configmaps/n', 'secrets/t'],
    },
  ] as { title: string; spec: Partial<PodSpec>; expected: string[] }[]) {
    it(`is ${title}`, () => expect(refs(spec)).to.have.members(expected).and.lengthOf(expected.length))
  }
})

describe('the Services that an Ingress leads to', () => {
  it('are those of its rules, and the default one', () => {
    const service = (name: string): object => ({ service: { name, port: { number: 80 } } })
    const spec = {
      defaultBackend: service('rest'),
      rules: [
        { http: { paths: [{ backend: service('shop') }, { backend: { resource: { kind: 'Bucket', name: 'b' } } }] } },
        { host: 'example.com' },
      ],
    }
    const ingress = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'web' }, spec }
    expect(ingressBackends(ingress)).to.deep.equal(['rest', 'shop'])
    expect(ingressBackends({ ...ingress, spec: {} })).to.deep.equal([])
  })
})
