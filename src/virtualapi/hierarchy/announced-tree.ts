// The tree of logical clusters, with the writes that were admitted and that the directory does not show yet: of two
// concurrent writes, the second is checked against the first.
import type { ClusterName } from '#apimachinery/meta/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

/** The facts of a logical cluster that the tree depends on. */
export type Place = Pick<LogicalCluster, 'name' | 'parent' | 'limits'>

/** How long an admitted write counts that never becomes visible, because it has failed. */
const announcedMs = 10_000

export class AnnouncedTree {
  readonly #directory: Pick<ClusterDirectory, 'byName' | 'childrenOf'>
  readonly #now: () => number
  readonly #announced = new Map<ClusterName, { readonly place: Place; readonly until: number }>()

  /** `now`: monotonic milliseconds. */
  constructor(directory: ClusterDirectory, now: () => number) {
    this.#directory = directory
    this.#now = now
    directory.onChange(({ before, after }) => {
      const name = (after ?? before)?.name
      if (name !== undefined && this.#announced.size > 0) this.#announced.delete(name)
    })
  }

  /** Counts `place` as written. Call it in the same step as the check that admits the write. */
  announce(place: Place): void {
    const now = this.#now()
    for (const [name, { until }] of this.#announced) if (until < now) this.#announced.delete(name)
    this.#announced.set(place.name, { place, until: now + announcedMs })
  }

  byName(name: ClusterName): LogicalCluster | undefined {
    const known = this.#directory.byName(name)
    const announced = this.#announced.get(name)
    if (announced === undefined || announced.until < this.#now()) return known
    const { parent: _parent, limits: _limits, ...rest } = known ?? unborn(name)
    return { ...rest, ...announced.place }
  }

  *childrenOf(name: ClusterName): Generator<LogicalCluster> {
    for (const child of this.#directory.childrenOf(name))
      if (!this.#announced.has(child.name) || this.byName(child.name)?.parent === name) yield child
    for (const announced of this.#announced.keys()) {
      const known = this.#directory.byName(announced)
      if (known?.parent === name) continue
      const child = this.byName(announced)
      if (child?.parent === name) yield child
    }
  }

  /** The logical clusters below, at all levels, the nearest first. */
  *below(name: ClusterName): Generator<LogicalCluster> {
    const seen = new Set<ClusterName>([name])
    for (const above of seen)
      for (const child of this.childrenOf(above))
        if (!seen.has(child.name)) {
          seen.add(child.name)
          yield child
        }
  }
}

function unborn(name: ClusterName): LogicalCluster {
  return { name, id: '' as LogicalCluster['id'], uid: '', creationTimestamp: '', owners: [], deleting: false }
}
