import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { definitionUp } from './exported-definition.ts'
import { statusUp } from './exported-status.ts'

const version = (name: string, storage = true) => ({ name, served: true, storage, subresources: { status: {} } })
const definition = (spec: object): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com', uid: 'u', labels: { own: 'x' } },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [version('v1')],
    ...spec,
  },
  status: { storedVersions: ['v1'] },
})

describe('a definition that a member exports', () => {
  it('says where it comes from, and has nothing else of the one in the member', () => {
    expect(definitionUp(definition({ conversion: { strategy: 'None' } }), 'east')).to.deep.equal({
      definition: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'widgets.example.com', labels: { 'kcp.dev/exported-from': 'east' } },
        spec: {
          group: 'example.com',
          scope: 'Namespaced',
          names: { plural: 'widgets', kind: 'Widget' },
          versions: [version('v1')],
        },
      },
      version: 'v1',
      hasStatus: true,
    })
  })

  it('has the stored version alone where a webhook of the member converts', () => {
    const versions = [version('v1beta1', false), version('v1')]
    const up = definitionUp(definition({ versions, conversion: { strategy: 'Webhook' } }), 'east')
    expect(up).to.have.deep.nested.property('definition.spec.versions', [version('v1')])
  })

  for (const { title, spec } of [
    { title: 'cluster-scoped', spec: { scope: 'Cluster' } },
    { title: 'larger than 1 MiB', spec: { versions: [{ ...version('v1'), schema: 'x'.repeat(1024 * 1024) }] } },
  ])
    it(`is refused if it is ${title}`, () => expect(definitionUp(definition(spec), 'east')).to.have.property('problem'))
})

describe('the status of a custom resource in a member', () => {
  const object = (generation: number, status = {}): KubeObject => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', generation },
    status,
  })
  const condition = (observedGeneration: number) => ({ type: 'Ready', status: 'True', observedGeneration })
  const live = object(7, { observedGeneration: 7, conditions: [condition(6)], size: 3 })

  it('names generations of the upstream object', () => {
    const seen = { observedGeneration: 2, conditions: [condition(1)], size: 3 }
    expect(statusUp(live, object(2), true)).to.deep.equal(seen)
    expect(live['status']).to.deep.equal({ observedGeneration: 7, conditions: [condition(6)], size: 3 })
  })

  it('has not observed a change that is not in the member yet', () => {
    expect(statusUp(live, object(2), false)).to.include({ observedGeneration: 1 })
  })
})
