// What has become of the owners that an object names.
import { LRUCache } from 'lru-cache'
import type { OwnerReference } from '../../apimachinery/meta/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { GraphObject, ObjectGraph } from './object-graph.ts'

export type OwnerState =
  /** There, and not waiting for its dependents. */
  | 'solid'
  /** Not there, or another object of that name. */
  | 'absent'
  /** Being deleted in the foreground: it goes when this object has gone. */
  | 'waiting'
  /** Of a kind that nobody serves, or that may not own this object: nothing is known, nothing is done. */
  | 'unresolvable'

export interface Owner {
  readonly reference: OwnerReference
  readonly state: OwnerState
  /** The owner is in this other namespace, which must not be. Empty: cluster-scoped object with a namespaced owner. */
  readonly wrongNamespace?: string
}

/** Uids that were seen to go, or were looked for in vain; they spare a question for every dependent. Bounded. */
export class GoneUids {
  private readonly uids = new LRUCache<string, true>({ max: 20_000 })

  /** `resource`: only of this one it is known that none has the uid; whoever names it may have meant another kind. */
  add(cluster: string, uid: string, resource = ''): void {
    this.uids.set(`${cluster}|${resource}|${uid}`, true)
  }
  has(cluster: string, uid: string, resource = ''): boolean {
    return this.uids.has(`${cluster}|${resource}|${uid}`)
  }
}

/** Asks the API for every owner that was not seen to go. */
export async function ownersOf(
  object: GraphObject,
  { graph, client, gone }: { graph: ObjectGraph; client: KubeClient; gone: GoneUids },
  signal: AbortSignal,
): Promise<Owner[]> {
  const { cluster, namespace } = object.place
  const owners: Owner[] = []
  for (const reference of object.metadata.ownerReferences ?? []) {
    if (gone.has(cluster, reference.uid)) {
      owners.push({ reference, state: 'absent' })
      continue
    }
    const served = await graph.resourceOf(cluster, reference, signal)
    if (served === undefined) {
      owners.push({ reference, state: 'unresolvable' })
      continue
    }
    if (served.namespaced && namespace === '') {
      owners.push({ reference, state: 'unresolvable', wrongNamespace: '' })
      continue
    }
    if (gone.has(cluster, reference.uid, served.resource)) {
      owners.push({ reference, state: 'absent' })
      continue
    }
    const ref = { name: reference.name, ...(served.namespaced ? { namespace } : {}) }
    const found = await client.tryGet(served.gvr, ref, { signal })
    if (found !== undefined && found.metadata.uid === reference.uid) {
      owners.push({ reference, state: isDeletingInForeground(found.metadata) ? 'waiting' : 'solid' })
      continue
    }
    const elsewhere = await graph.namespaceOf(cluster, served.resource, reference.uid, signal)
    // No uid comes again, nor does one that never was.
    if (elsewhere === undefined) gone.add(cluster, reference.uid, served.resource)
    owners.push({ reference, state: 'absent', ...(elsewhere === undefined ? {} : { wrongNamespace: elsewhere }) })
  }
  return owners
}

/** True while it waits for its dependents to go. */
export function isDeletingInForeground(metadata: GraphObject['metadata']): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('foregroundDeletion') === true
}
