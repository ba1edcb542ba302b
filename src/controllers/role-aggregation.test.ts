import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { invalid } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { Candidate, ObjectGraph, SelectedObject } from '#reconcile/object-graph/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { aggregatedRules, aggregatesFrom, RoleAggregator, decodeRole, sameRules } from './role-aggregation.ts'

const { signal } = new AbortController()

describe('a reconcile of the ClusterRoles of a logical cluster', () => {
  it('decodes each role once, whatever the number of aggregated roles and of their equal selectors', async () => {
    const cluster = new Cluster()
    for (let i = 0; i < 20; i++) cluster.put(role(`source${i}`, { team: 'a' }, rules(3000, i % 3)))
    for (let i = 0; i < 20; i++) cluster.put(aggregated(`sum${i}`, 150))
    const reconciles = new RoleAggregator({ graph: cluster, log: silentLogger })
    await reconciles.reconcile('id', cluster, signal)
    expect(cluster.rulesIn('sum7')).to.have.length(9000)
    expect(cluster.writes).to.equal(20)
    // 40 roles; the 20 that were written are decoded once more.
    expect(reconciles.decoded.decodings).to.equal(60)
  })

  it('does nothing in a repeated reconcile, until a role changes', async () => {
    const cluster = new Cluster()
    cluster.put(role('source', { team: 'a' }, rules(10)))
    cluster.put(aggregated('sum', 2))
    const reconciles = new RoleAggregator({ graph: cluster, log: silentLogger })
    await reconciles.reconcile('id', cluster, signal)
    const { decodings } = reconciles.decoded
    await reconciles.reconcile('id', cluster, signal)
    expect(reconciles.decoded.decodings).to.equal(decodings)
    expect(cluster.writes).to.equal(1)
    cluster.put(role('source', { team: 'a' }, rules(11)))
    await reconciles.reconcile('id', cluster, signal)
    expect(cluster.rulesIn('sum')).to.have.length(11)
  })

  it('keeps the old rules if there are too many to aggregate or the write is refused, and does not try again', async () => {
    for (const [count, tries] of [
      [11_000, 0],
      [5000, 1],
    ] as const) {
      const cluster = new Cluster()
      cluster.refuses = true
      cluster.put(role('source', { team: 'a' }, rules(count)))
      cluster.put(aggregated('sum', 1))
      const reconciles = new RoleAggregator({ graph: cluster, log: silentLogger })
      for (let i = 0; i < 5; i++) await reconciles.reconcile('id', cluster, signal)
      expect(cluster.rulesIn('sum')).to.deep.equal([])
      expect(cluster.writes).to.equal(tries)
      expect(reconciles.decoded.decodings).to.equal(2)
    }
  })

  it('lets other tasks run', async () => {
    const cluster = new Cluster()
    for (let i = 0; i < 20; i++) cluster.put(role(`source${i}`, { team: 'a' }, rules(3000, i)))
    for (let i = 0; i < 20; i++) cluster.put(aggregated(`sum${i}`, 20))
    let others = 0
    const timer = setInterval(() => others++, 0)
    await new RoleAggregator({ graph: cluster, log: silentLogger }).reconcile('id', cluster, signal)
    clearInterval(timer)
    expect(others).to.be.greaterThan(3)
  })
})

/** The ClusterRoles of one logical cluster, in memory. */
class Cluster implements Pick<ObjectGraph, 'select'>, Pick<KubeClient, 'patch'> {
  writes = 0
  refuses = false
  readonly #roles = new Map<string, { json: string; revision: number }>()
  #revision = 0

  put(object: KubeObject): void {
    this.#roles.set(object.metadata.name ?? '', { json: JSON.stringify(object), revision: ++this.#revision })
  }
  rulesIn(name: string): unknown {
    const { rules: found } = JSON.parse(this.#roles.get(name)?.json ?? '{}') as { rules?: unknown }
    return found
  }
  readonly select = async (
    cluster: string,
    resource: string,
    isWanted: (candidate: Candidate) => boolean,
  ): Promise<SelectedObject[]> =>
    [...this.#roles]
      .map(([name, { json, revision }]) => {
        const object = (): KubeObject => JSON.parse(json) as KubeObject
        const labels = object().metadata.labels ?? {}
        const contains = (text: string): boolean => json.includes(text)
        return {
          key: { cluster, resource, namespace: '', name },
          revision,
          labels,
          bytes: json.length,
          object,
          contains,
        }
      })
      .filter(isWanted)
      .sort((a, b) => (a.key.name < b.key.name ? -1 : 1))
  /** Applies the rules, as the server does for the only owner of the field. */
  readonly patch = async <T extends KubeObject>(
    _: unknown,
    { name }: { name: string },
    __: string,
    config: unknown,
  ): Promise<T> => {
    this.writes++
    if (this.refuses) throw invalid({ group: 'rbac.authorization.k8s.io', kind: 'ClusterRole' }, 'sum', [])
    const { rules: applied = [] } = config as { rules?: object[] }
    const object = { ...(JSON.parse(this.#roles.get(name)?.json ?? '{}') as T), rules: applied }
    this.put(object)
    return object
  }
}
function role(name: string, labels: Record<string, string>, of: readonly object[]): KubeObject {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, labels }, rules: of }
}
function aggregated(name: string, selectors: number): KubeObject {
  const clusterRoleSelectors = Array.from({ length: selectors }, () => ({ matchLabels: { team: 'a' } }))
  return { ...role(name, {}, []), aggregationRule: { clusterRoleSelectors } }
}
function rules(count: number, series = 0): object[] {
  return Array.from({ length: count }, (_, i) => ({ apiGroups: [''], resources: [`r${series}.${i}`], verbs: ['get'] }))
}

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
