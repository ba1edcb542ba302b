import { expect } from 'chai'
import { podWarnings, templateWarnings } from './pod-warnings.ts'

const many = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** test/parity/kinds/warnings.ts compares the texts with those of a real kube-apiserver. */
describe('warnings of pods', () => {
  it('are absent for an ordinary pod', () => {
    const ports = [{ name: 'http', containerPort: 80, protocol: 'TCP' }]
    const spec = { containers: [{ name: 'main', image: 'nginx', ports, env: [{ name: 'A' }, { name: 'B' }] }] }
    expect(podWarnings({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec })).to.deep.equal([])
    expect(templateWarnings('spec.template', { spec })).to.deep.equal([])
  })

  for (const { title, spec } of [
    {
      title: 'variables that hide each other',
      spec: { containers: [{ name: 'a', env: many(50_000).map(() => ({ name: 'A', value: '' })) }] },
    },
    {
      title: 'ports of the same number',
      spec: { containers: [{ name: 'a', ports: many(1000).map(() => ({ containerPort: 80, protocol: 'TCP' })) }] },
    },
    {
      title: 'files of the same name',
      spec: {
        containers: [],
        volumes: [{ name: 'a', secret: { items: many(1000).map(() => ({ key: 'k', path: 'p' })) } }],
      },
    },
  ])
    it(`are limited in number for ${title}`, () => {
      const warnings = templateWarnings('spec.template', { spec })
      expect(warnings).to.have.length(200)
      expect(new Set(warnings).size).to.be.greaterThan(0)
    })

  for (const { title, spec } of [
    {
      title: 'ports',
      spec: {
        containers: [{ name: 'a', ports: many(30_000).map((hostPort) => ({ containerPort: 80, hostPort })) }],
      },
    },
    {
      title: 'files',
      spec: {
        containers: [],
        volumes: [{ name: 'a', secret: { items: many(30_000).map((i) => ({ key: 'k', path: `p${i}` })) } }],
      },
    },
  ])
    it(`are skipped for thousands of ${title}, since comparing them all is quadratic`, () =>
      expect(templateWarnings('spec.template', { spec })).to.deep.equal([]))
})
