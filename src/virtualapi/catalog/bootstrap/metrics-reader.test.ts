import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import policy from './generated/bootstrap-objects.json' with { type: 'json' }
import { withMetricsReader } from './metrics-reader.ts'

describe('the ClusterRole of metrics readers', () => {
  const before = policy as unknown as KubeObject[]
  const after = withMetricsReader(before)
  const rule = { apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }
  const rulesOf = (objects: readonly KubeObject[], name: string): object[] =>
    objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name)?.['rules'] as object[]

  for (const name of ['view', 'edit', 'admin'])
    it(`is aggregated by ${name}, whose other rules stay as Kubernetes has them`, () => {
      expect(rulesOf(after, name)).to.deep.include(rule)
      const others = rulesOf(after, name).filter((one) => JSON.stringify(one) !== JSON.stringify(rule))
      expect(others).to.deep.equal(rulesOf(before, name))
    })

  it('is the only object that is added or changed besides', () => {
    expect(after).to.have.length(before.length + 1)
    const changed = before.filter((object, i) => object !== after[i]).map(({ metadata }) => metadata.name)
    expect(changed).to.have.members(['view', 'edit', 'admin'])
  })
})
