// Remembers owners whose deletion was seen. Needed only once their kind is no longer served, so that nobody can ask for them: the
// dependents of custom resources go after the definition, too. Bounded.
import { LRUCache } from 'lru-cache'
import { parseApiVersion, type OwnerReference } from '#apimachinery/meta/index.ts'
import type { DeletedObject, ObjectKey } from '#reconcile/object-graph/index.ts'

export class GoneOwners {
  readonly #owners = new LRUCache<string, true>({ max: 20_000 })
  readonly #nowhere = new LRUCache<string, true>({ max: 20_000 })

  add({ cluster, resource, kind, namespace, name, uid }: DeletedObject): void {
    const dot = resource.indexOf('.')
    this.#owners.set(keyOf(cluster, [dot < 0 ? '' : resource.slice(dot + 1), kind, namespace, name, uid]), true)
  }

  /** Whether the deletion of exactly this owner of a dependent was seen: of its group, kind, name and uid, in a place where it may own it. */
  has(dependent: Pick<ObjectKey, 'cluster' | 'namespace'>, { apiVersion, kind, name, uid }: OwnerReference): boolean {
    const { group } = parseApiVersion(apiVersion)
    return [dependent.namespace, ''].some((namespace) =>
      this.#owners.has(keyOf(dependent.cluster, [group, kind, namespace, name, uid])),
    )
  }

  /** No object of the resource has this uid. It decides nothing: it saves a search whose result would be an Event. */
  addNowhere(cluster: string, resource: string, uid: string): void {
    this.#nowhere.set(keyOf(cluster, [resource, uid]), true)
  }

  isNowhere(cluster: string, resource: string, uid: string): boolean {
    return this.#nowhere.has(keyOf(cluster, [resource, uid]))
  }
}

/** Names and uids of references are free text: JSON keeps them apart. */
function keyOf(cluster: string, parts: readonly string[]): string {
  return `${cluster}|${JSON.stringify(parts)}`
}
