// The namespaces with ResourceQuotas in loaded logical clusters. Listeners are called for changes of objects in these
// namespaces only.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, CacheEvent } from '#store/watch-cache/index.ts'
import { quotaResource } from '#virtualapi/write/quota/index.ts'

export type NamespaceListener = (namespace: { readonly cluster: string; readonly namespace: string }) => void

export class QuotaNamespaces {
  readonly #listeners = new Set<NamespaceListener>()
  /** The names of the quotas by namespace, by logical cluster. */
  readonly #known = new Map<ClusterId, Map<string, Set<string>>>()

  /**
   * Calls the listener for every known namespace, then for every change in one. Returns the function that ends this.
   */
  follow(listener: NamespaceListener): () => void {
    this.#listeners.add(listener)
    for (const [cluster, namespaces] of this.#known)
      for (const namespace of namespaces.keys()) listener({ cluster, namespace })
    return () => void this.#listeners.delete(listener)
  }

  /** Reads the quotas of a logical cluster that was loaded for the first time. */
  loaded(objects: ClusterObjects): void {
    for (const { key } of objects.list({ resource: quotaResource })) {
      this.#add(objects.cluster, key.namespace, key.name)
      this.#tell(objects.cluster, key.namespace)
    }
  }

  /** Called for every change in all logical clusters. */
  changed({ type, entry: { key } }: CacheEvent): void {
    const { cluster, resource, namespace, name } = key
    if (resource === quotaResource && type !== 'DELETED') this.#add(cluster, namespace, name)
    if (this.#known.get(cluster)?.has(namespace) !== true) return
    if (resource === quotaResource && type === 'DELETED') this.#remove(cluster, namespace, name)
    this.#tell(cluster, namespace)
  }

  forget(cluster: ClusterId): void {
    this.#known.delete(cluster)
  }

  #add(cluster: ClusterId, namespace: string, name: string): void {
    const namespaces = this.#known.get(cluster) ?? new Map<string, Set<string>>()
    this.#known.set(cluster, namespaces.set(namespace, (namespaces.get(namespace) ?? new Set()).add(name)))
  }

  #remove(cluster: ClusterId, namespace: string, name: string): void {
    const namespaces = this.#known.get(cluster)
    const names = namespaces?.get(namespace)
    names?.delete(name)
    if (names?.size === 0) namespaces?.delete(namespace)
    if (namespaces?.size === 0) this.#known.delete(cluster)
  }

  #tell(cluster: ClusterId, namespace: string): void {
    for (const listener of this.#listeners) listener({ cluster, namespace })
  }
}
