import { expect } from 'chai'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError, type StatusError } from '#apimachinery/status/index.ts'
import type { ClusterDirectory, LogicalCluster, SubtreeLimits } from '#virtualapi/request/logical-cluster.ts'
import { SubtreeFlow } from './subtree-flow.ts'

type Change = Parameters<Parameters<ClusterDirectory['onChange']>[0]>[0]

/** A tree that the test changes. */
class Tree implements ClusterDirectory {
  readonly #clusters = new Map<string, LogicalCluster>()
  readonly #listeners: ((change: Change) => void)[] = []

  put(name: string, { parent, limits }: { parent?: string; limits?: SubtreeLimits } = {}): void {
    const before = this.#clusters.get(name)
    const after: LogicalCluster = {
      name: name as ClusterName,
      id: idOf(name),
      uid: name,
      creationTimestamp: '2026-01-01T00:00:00Z',
      owners: [],
      deleting: false,
      ...(parent !== undefined && { parent: parent as ClusterName }),
      ...(limits && { limits }),
    }
    this.#clusters.set(name, after)
    for (const listener of this.#listeners) listener({ ...(before && { before }), after })
  }
  byName(name: ClusterName): LogicalCluster | undefined {
    return this.#clusters.get(name)
  }
  byId(id: ClusterId): LogicalCluster | undefined {
    return this.all().find((one) => one.id === id)
  }
  all(): LogicalCluster[] {
    return [...this.#clusters.values()]
  }
  childrenOf(name: ClusterName): LogicalCluster[] {
    return this.all().filter(({ parent }) => parent === name)
  }
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.push(listener)
    return () => undefined
  }
}

const idOf = (name: string): ClusterId => `id-${name}` as ClusterId

/** How many of these succeed, before each moment of the clock. */
function granted(act: () => void, times: number): number {
  let count = 0
  for (let i = 0; i < times; i++)
    try {
      act()
      count++
    } catch (error) {
      if (!isStatusError(error) || error.code !== 429) throw error
    }
  return count
}

function refusal(act: () => void): StatusError {
  try {
    act()
  } catch (error) {
    if (isStatusError(error)) return error
  }
  throw new Error('it was not refused')
}

describe('limits of watches and requests of a subtree', () => {
  let tree: Tree
  let now: number
  let flow: SubtreeFlow
  beforeEach(() => {
    tree = new Tree()
    now = 0
    flow = new SubtreeFlow({ directory: tree, now: () => now })
    tree.put('team', { limits: { requestsPerSecond: 20, watches: 3 } })
    tree.put('one', { parent: 'team' })
    tree.put('two', { parent: 'team' })
    tree.put('other')
  })

  it('grant a burst, then exactly the rate, to all that share it together', () => {
    const names = ['team', 'one', 'two']
    let asked = 0
    const ask = (): void => flow.request(idOf(names[asked++ % 3] ?? ''))
    expect(granted(ask, 100), 'half a second of the rate at once').to.equal(10)
    let sum = 0
    for (; now < 10_000; now += 10) sum += granted(ask, 5)
    expect(sum).to.equal(199)
    expect(granted(() => flow.request(idOf('other')), 1000)).to.equal(1000)
  })

  it('say when to come again', () => {
    tree.put('team', { limits: { requestsPerSecond: 1 } })
    expect(
      granted(() => flow.request(idOf('one')), 100),
      'the least burst',
    ).to.equal(5)
    now += 100
    const { headers, message } = refusal(() => flow.request(idOf('one')))
    expect(headers).to.deep.equal({ 'Retry-After': '1' })
    expect(message).to.contain(
      'requestsPerSecond of logical cluster "team" and all below it, limited: requestsPerSecond=1',
    )
    now += 900
    expect(granted(() => flow.request(idOf('one')), 2)).to.equal(1)
  })

  it('are not widened by a change of the tree', () => {
    granted(() => flow.request(idOf('one')), 100)
    tree.put('two', { parent: 'team', limits: { requestsPerSecond: 5 } })
    expect(granted(() => flow.request(idOf('one')), 100)).to.equal(0)
    now += 1000
    expect(
      granted(() => flow.request(idOf('one')), 100),
      '20 less the 5 of two, for half a second',
    ).to.equal(7)
    expect(granted(() => flow.request(idOf('two')), 100)).to.equal(5)
  })

  it('count watches that were open before, and give a place back once', () => {
    tree.put('team')
    const ends = ['one', 'one', 'two', 'two'].map((name) => flow.watch(idOf(name)))
    tree.put('team', { limits: { watches: 3 } })
    expect(refusal(() => flow.watch(idOf('team'))).message).to.contain('watches=3')
    for (const end of ends) {
      end()
      end()
    }
    expect(granted(() => flow.watch(idOf('one')), 10)).to.equal(3)
    expect(flow.watchesOf(idOf('one'))).to.equal(3)
  })

  it('are shared by the processes that have the logical clusters, and never exceeded together', () => {
    tree.put('team', { limits: { requestsPerSecond: 90, watches: 10 } })
    const flows = [['team'], ['one', 'two']].map((owned) => ({
      owned,
      of: new SubtreeFlow({
        directory: tree,
        ownership: { owns: (id) => owned.some((name) => idOf(name) === id), follow: () => () => undefined },
        now: () => now,
      }),
    }))
    for (const { name, ...place } of tree.all()) tree.put(name, place)
    const watches = flows.map(({ of, owned }) => granted(() => of.watch(idOf(owned[0] ?? '')), 100))
    expect(watches, 'a third and two thirds of ten').to.deep.equal([3, 6])
    const requests = flows.map(({ of, owned }) => granted(() => of.request(idOf(owned[0] ?? '')), 100))
    expect(requests, 'half a second of 30 and of 60').to.deep.equal([15, 30])
  })
})
