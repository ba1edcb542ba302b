import { expect } from 'chai'
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { aggregatedRules, aggregatesFrom, isAggregated, sameRules } from './aggregate-rules.ts'

describe('aggregation of ClusterRoles', () => {
  const get = (...resources: string[]): object => ({ apiGroups: [''], resources, verbs: ['get'] })
  const role = (name: string, labels: Record<string, string>, rules: object[]): KubeObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels },
    rules,
  })
  const aggregated = (name: string, ...clusterRoleSelectors: object[]): KubeObject => ({
    ...role(name, {}, []),
    aggregationRule: { clusterRoleSelectors },
  })
  const toView = { matchLabels: { view: 'true' } }
  const toEdit = { matchExpressions: [{ key: 'edit', operator: 'Exists' }] }
  const all = [
    role('b', { view: 'true' }, [get('pods')]),
    role('a', { view: 'true' }, [get('nodes'), get('pods')]),
    role('c', { edit: '' }, [get('secrets')]),
    role('d', {}, [get('events')]),
  ]

  it('takes each rule once, in the order of selectors, then of names', () => {
    expect(aggregatedRules(aggregated('x', toEdit, toView), all)).to.deep.equal([
      get('secrets'),
      get('nodes'),
      get('pods'),
    ])
  })

  it('takes no rules of the role itself', () => {
    const own = {
      ...aggregated('own', toView),
      metadata: { name: 'own', labels: { view: 'true' } },
      rules: [get('own')],
    }
    expect(aggregatedRules(own, [own])).to.deep.equal([])
  })

  it('applies only to roles with selectors', () => {
    expect(isAggregated(aggregated('x', toView))).to.equal(true)
    expect(isAggregated(aggregated('x'))).to.equal(false)
    expect(isAggregated(role('x', {}, []))).to.equal(false)
  })

  it('finds its sources by their labels', () => {
    const isSource = aggregatesFrom([aggregated('x', toView), aggregated('y', toEdit)])
    expect([isSource({ view: 'true' }), isSource({ edit: 'any' }), isSource({ view: 'false' })]).to.deep.equal([
      true,
      true,
      false,
    ])
  })

  for (const { title, a, b, same } of [
    {
      title: 'in another order of fields',
      a: [{ verbs: ['get'], resources: ['pods'] }],
      b: [{ resources: ['pods'], verbs: ['get'] }],
      same: true,
    },
    {
      title: 'with an empty list written or left out',
      a: [{ verbs: ['get'], resourceNames: [] }],
      b: [{ verbs: ['get'] }],
      same: true,
    },
    { title: 'for absent and empty rules', a: undefined, b: [], same: true },
    { title: 'but not in another order', a: [get('a'), get('b')], b: [get('b'), get('a')], same: false },
  ]) {
    it(`sees the same rules ${title}`, () => expect(sameRules(a, b)).to.equal(same))
  }
})
