import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { invalid } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { Candidate, ObjectGraph, SelectedObject } from '#reconcile/object-graph/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { AggregationVisits } from './aggregate-roles.ts'

const { signal } = new AbortController()

describe('a visit of the ClusterRoles of a logical cluster', () => {
  it('decodes each role once, whatever the number of aggregated roles and of their equal selectors', async () => {
    const cluster = new Cluster()
    for (let i = 0; i < 20; i++) cluster.put(role(`source${i}`, { team: 'a' }, rules(3000, i % 3)))
    for (let i = 0; i < 20; i++) cluster.put(aggregated(`sum${i}`, 150))
    const visits = new AggregationVisits({ graph: cluster, log: silentLogger })
    await visits.visit('id', cluster, signal)
    expect(cluster.rulesIn('sum7')).to.have.length(9000)
    expect(cluster.writes).to.equal(20)
    // 40 roles; the 20 that were written are decoded once more.
    expect(visits.decoded.decodings).to.equal(60)
  })

  it('does nothing in a repeated visit, until a role changes', async () => {
    const cluster = new Cluster()
    cluster.put(role('source', { team: 'a' }, rules(10)))
    cluster.put(aggregated('sum', 2))
    const visits = new AggregationVisits({ graph: cluster, log: silentLogger })
    await visits.visit('id', cluster, signal)
    const { decodings } = visits.decoded
    await visits.visit('id', cluster, signal)
    expect(visits.decoded.decodings).to.equal(decodings)
    expect(cluster.writes).to.equal(1)
    cluster.put(role('source', { team: 'a' }, rules(11)))
    await visits.visit('id', cluster, signal)
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
      const visits = new AggregationVisits({ graph: cluster, log: silentLogger })
      for (let i = 0; i < 5; i++) await visits.visit('id', cluster, signal)
      expect(cluster.rulesIn('sum')).to.deep.equal([])
      expect(cluster.writes).to.equal(tries)
      expect(visits.decoded.decodings).to.equal(2)
    }
  })

  it('lets other tasks run', async () => {
    const cluster = new Cluster()
    for (let i = 0; i < 20; i++) cluster.put(role(`source${i}`, { team: 'a' }, rules(3000, i)))
    for (let i = 0; i < 20; i++) cluster.put(aggregated(`sum${i}`, 20))
    let others = 0
    const timer = setInterval(() => others++, 0)
    await new AggregationVisits({ graph: cluster, log: silentLogger }).visit('id', cluster, signal)
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
