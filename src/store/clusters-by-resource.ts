// Which logical clusters have objects of a resource: lists over all logical clusters read only these.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ObjectKey } from '#store/store.ts'

export class ClustersByResource {
  readonly #counts = new Map<string, Map<ClusterId, number>>()

  add({ resource, cluster }: Pick<ObjectKey, 'resource' | 'cluster'>, count = 1): void {
    const counts = this.#counts.get(resource) ?? new Map<ClusterId, number>()
    this.#counts.set(resource, counts.set(cluster, (counts.get(cluster) ?? 0) + count))
  }

  remove({ resource, cluster }: ObjectKey): void {
    const counts = this.#counts.get(resource)
    const count = counts?.get(cluster) ?? 0
    if (count > 1) counts?.set(cluster, count - 1)
    else counts?.delete(cluster)
    if (counts?.size === 0) this.#counts.delete(resource)
  }

  /** In the order of keys. */
  clustersOf(resource: string): readonly ClusterId[] {
    return [...(this.#counts.get(resource)?.keys() ?? [])].sort()
  }
}
