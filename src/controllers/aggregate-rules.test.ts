import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { aggregatedRules, aggregatesFrom, sameRules } from './aggregate-rules.ts'
import { decodeRole } from './decoded-roles.ts'

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

  const rulesOf = async (
    of: KubeObject,
    from: readonly KubeObject[],
    work = new WorkBudget(),
  ): Promise<unknown[] | undefined> => {
    const sources = from
      .map((source) => {
        const { name = '', labels = {} } = source.metadata
        return { name, labels, bytes: JSON.stringify(source).length, rules: () => decodeRole(source).rules }
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    const rules = await aggregatedRules(decodeRole(of), sources, { work, pause: () => undefined })
    return rules?.map(({ rule }) => rule)
  }

  it('takes each rule once, in the order of selectors, then of names', async () => {
    expect(await rulesOf(aggregated('x', toEdit, toView), all)).to.deep.equal([
      get('secrets'),
      get('nodes'),
      get('pods'),
    ])
  })

  it('takes no rules of the role itself', async () => {
    const own = {
      ...aggregated('own', toView),
      metadata: { name: 'own', labels: { view: 'true' } },
      rules: [get('own')],
    }
    expect(await rulesOf(own, [own])).to.deep.equal([])
  })

  it('compares like selectors once', () => {
    const { selectors } = decodeRole(aggregated('x', toView, toEdit, toView, { ...toView, matchExpressions: [] }))
    expect(selectors).to.have.length(2)
  })

  it('stops when the rules are too many or too long, or the roles are too large', async () => {
    const many = (count: number, length = 1): KubeObject =>
      role(
        'many',
        { view: 'true' },
        Array.from({ length: count }, (_, i) => get(`${'x'.repeat(length)}${i}`)),
      )
    expect(await rulesOf(aggregated('x', toView), [many(10_000)])).to.have.length(10_000)
    expect(await rulesOf(aggregated('x', toView), [many(10_000), ...all])).to.equal(undefined)
    expect(await rulesOf(aggregated('x', toView), [many(1000, 2000)])).to.equal(undefined)
    expect(await rulesOf(aggregated('x', toView), all, new WorkBudget({ bytes: 100 }))).to.equal(undefined)
    const selectors = Array.from({ length: 1001 }, (_, i) => ({ matchLabels: { view: `${i}` } }))
    expect(aggregatesFrom([decodeRole(aggregated('x', ...selectors))])).to.equal(undefined)
  })

  it('applies only to roles with selectors', () => {
    expect(decodeRole(aggregated('x', toView)).selectors).to.have.length(1)
    expect(decodeRole(aggregated('x')).selectors).to.deep.equal([])
    expect(decodeRole(role('x', {}, [])).selectors).to.deep.equal([])
  })

  it('finds its sources by their labels', () => {
    const isSource = aggregatesFrom([decodeRole(aggregated('x', toView)), decodeRole(aggregated('y', toEdit))])
    expect([isSource?.({ view: 'true' }), isSource?.({ edit: 'any' }), isSource?.({ view: 'false' })]).to.deep.equal([
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
    it(`sees the same rules ${title}`, () => {
      const rules = (given: object[] | undefined) => decodeRole({ ...role('x', {}, []), rules: given }).rules
      expect(sameRules(rules(a), rules(b))).to.equal(same)
    })
  }
})
