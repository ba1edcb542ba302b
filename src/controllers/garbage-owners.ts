// The state of the owners that an object names.
import { LRUCache } from 'lru-cache'
import { type KubeObject, type OwnerReference, parseApiVersion } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import type {
  DeletedObject,
  GraphObject,
  ObjectGraph,
  ObjectKey,
  ServedResource,
} from '#reconcile/object-graph/index.ts'

export type OwnerState =
  /** The owner exists and does not wait for its dependents. */
  | 'solid'
  /** The owner does not exist, or its name belongs to another object now. */
  | 'absent'
  /** The owner is being deleted in the foreground: it goes after this object. */
  | 'waiting'
  /** The kind is not served, or its objects cannot own this object. Nothing is known, so nothing is done. */
  | 'unresolvable'

export interface Owner {
  readonly reference: OwnerReference
  readonly state: OwnerState
  /** The reference is invalid: its owner exists, but in this other namespace. */
  readonly wrongNamespace?: string
}

interface Lookup {
  readonly graph: Pick<ObjectGraph, 'resourceOf' | 'namespaceOf'>
  readonly client: Pick<KubeClient, 'tryGet'>
  readonly gone: GoneOwners
}

/**
 * The owners of an object. Asks the API for each one, by kind, namespace, name and uid: neither an earlier deletion of
 * this uid nor an earlier response counts, because another object may have the same uid. Rejects with StatusError.
 */
export async function ownersOf(object: GraphObject, lookup: Lookup, signal: AbortSignal): Promise<Owner[]> {
  const owners: Owner[] = []
  for (const reference of object.metadata.ownerReferences ?? []) {
    owners.push({ reference, ...(await stateOf(object, reference, lookup, signal)) })
  }
  return owners
}

async function stateOf(
  object: GraphObject,
  reference: OwnerReference,
  lookup: Lookup,
  signal: AbortSignal,
): Promise<Omit<Owner, 'reference'>> {
  const { graph, gone } = lookup
  const { cluster, namespace } = object.key
  const served = await graph.resourceOf(cluster, reference, signal)
  if (served === undefined) return { state: gone.has(object.key, reference) ? 'absent' : 'unresolvable' }
  if (served.namespaced && namespace === '')
    return { state: 'unresolvable', ...(await elsewhere(object, { reference, served }, lookup, signal)) }
  const found = await liveOwner(served, { name: reference.name, namespace }, lookup, signal)
  if (found === 'unreadable') return { state: 'unresolvable' }
  if (found?.metadata.uid === reference.uid)
    return { state: isDeletingInForeground(found.metadata) ? 'waiting' : 'solid' }
  return { state: 'absent', ...(await elsewhere(object, { reference, served }, lookup, signal)) }
}

/** The object that now has the owner's name; `unreadable` if the API cannot read its kind, such as TokenReview. */
async function liveOwner(
  { gvr, namespaced }: ServedResource,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  { client }: Lookup,
  signal: AbortSignal,
): Promise<KubeObject | 'unreadable' | undefined> {
  try {
    return await client.tryGet(gvr, { name, ...(namespaced && { namespace }) }, { signal })
  } catch (error) {
    if (isStatusError(error, 'MethodNotAllowed')) return 'unreadable'
    throw error
  }
}

/** Finds the owner in another namespace. The result has no `wrongNamespace` if it is in none. */
async function elsewhere(
  { key: { cluster, namespace } }: GraphObject,
  { reference: { uid }, served: { resource } }: { readonly reference: OwnerReference; readonly served: ServedResource },
  { graph, gone }: Lookup,
  signal: AbortSignal,
): Promise<Pick<Owner, 'wrongNamespace'>> {
  // A search reads all objects of the resource: the dependents of one absent owner must not each cause a search.
  if (gone.isNowhere(cluster, resource, uid)) return {}
  const wrongNamespace = await graph.namespaceOf(cluster, resource, uid, signal)
  if (wrongNamespace === undefined) gone.addNowhere(cluster, resource, uid)
  return wrongNamespace === undefined || wrongNamespace === namespace ? {} : { wrongNamespace }
}

/** True while the object is being deleted and waits for its dependents. */
export function isDeletingInForeground(metadata: GraphObject['metadata']): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('foregroundDeletion') === true
}

/**
 * Owners whose deletion was seen, up to a limit. They matter only when their kind is no longer served, so that they
 * cannot be read: the dependents of custom resources must be deleted after the definition, too.
 */
export class GoneOwners {
  readonly #owners = new LRUCache<string, true>({ max: 20_000 })
  readonly #nowhere = new LRUCache<string, true>({ max: 20_000 })

  add({ cluster, resource, kind, namespace, name, uid }: DeletedObject): void {
    const dot = resource.indexOf('.')
    this.#owners.set(keyOf(cluster, [dot < 0 ? '' : resource.slice(dot + 1), kind, namespace, name, uid]), true)
  }

  /**
   * Whether the deletion of exactly this owner of a dependent was seen: an object with its group, kind, name and uid,
   * in a namespace where it may own the dependent.
   */
  has(dependent: Pick<ObjectKey, 'cluster' | 'namespace'>, { apiVersion, kind, name, uid }: OwnerReference): boolean {
    const { group } = parseApiVersion(apiVersion)
    return [dependent.namespace, ''].some((namespace) =>
      this.#owners.has(keyOf(dependent.cluster, [group, kind, namespace, name, uid])),
    )
  }

  /**
   * Notes that no object of the resource has this uid. The note decides nothing: it saves a search that is only needed
   * for an Event.
   */
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
