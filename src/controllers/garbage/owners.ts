// The state of the owners that an object names.
import { LRUCache } from 'lru-cache'
import type { OwnerReference } from '../../apimachinery/meta/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { GraphObject, ObjectGraph } from '../../object-graph/index.ts'

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
  /** The reference is invalid: the owner is in this other namespace, or, if empty, a cluster-scoped object names it. */
  readonly wrongNamespace?: string
}

/** Uids that no longer exist, so that dependents of one owner do not each ask for it. Bounded. */
export class GoneUids {
  readonly #uids = new LRUCache<string, true>({ max: 20_000 })

  /** `resource`: the uid is known to be absent from this resource only; a reference may name another kind. */
  add(cluster: string, uid: string, resource = ''): void {
    this.#uids.set(`${cluster}|${resource}|${uid}`, true)
  }
  has(cluster: string, uid: string, resource = ''): boolean {
    return this.#uids.has(`${cluster}|${resource}|${uid}`)
  }
}

interface Lookup {
  readonly graph: Pick<ObjectGraph, 'resourceOf' | 'namespaceOf'>
  readonly client: Pick<KubeClient, 'tryGet'>
  readonly gone: GoneUids
}

/** The owners of an object. Asks the API for each one that is not known to be gone. Rejects with StatusError. */
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
  { graph, client, gone }: Lookup,
  signal: AbortSignal,
): Promise<Omit<Owner, 'reference'>> {
  const { cluster, namespace } = object.key
  const { uid, name } = reference
  if (gone.has(cluster, uid)) return { state: 'absent' }
  const served = await graph.resourceOf(cluster, reference, signal)
  if (served === undefined) return { state: 'unresolvable' }
  if (served.namespaced && namespace === '') return { state: 'unresolvable', wrongNamespace: '' }
  if (gone.has(cluster, uid, served.resource)) return { state: 'absent' }
  const found = await client.tryGet(served.gvr, { name, ...(served.namespaced && { namespace }) }, { signal })
  if (found?.metadata.uid === uid) return { state: isDeletingInForeground(found.metadata) ? 'waiting' : 'solid' }
  const elsewhere = await graph.namespaceOf(cluster, served.resource, uid, signal)
  if (elsewhere !== undefined) return { state: 'absent', wrongNamespace: elsewhere }
  // Uids are never used again, so this answer stays true.
  gone.add(cluster, uid, served.resource)
  return { state: 'absent' }
}

/** True while the object is being deleted and waits for its dependents. */
export function isDeletingInForeground(metadata: GraphObject['metadata']): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('foregroundDeletion') === true
}
