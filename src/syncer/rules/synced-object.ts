// An object of a logical cluster that is copied into the member, as one reconcile finds it on both sides.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'
import { Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { requestKindOf } from '#syncer/context/request.ts'
import { syncedKindOf, type SyncedKind } from './synced-kinds.ts'

interface ObjectRef {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** Both sides are read once, so that all steps see the same versions; `again` reads them anew. */
export class SyncedObject extends Reconcile {
  readonly row: SyncedKind
  /** The object upstream. */
  readonly object: CachedObject | undefined
  /** The object of this name in the member, which may not be a copy of the upstream object. */
  readonly copy: CachedObject | undefined

  constructor(context: SyncContext, row: SyncedKind, ref: ObjectRef, signal: AbortSignal) {
    const { cluster, namespace, name } = ref
    super(context, { kind: requestKindOf(row.resource), cluster, namespace, name }, signal)
    this.row = row
    this.object = this.upstream(row.resource, name)
    this.copy = this.live(row.resource, name)
  }

  get resource(): ResourceName {
    return this.row.resource
  }

  get gvr(): GroupVersionResource {
    return gvrs[this.row.resource]
  }

  /** The same object as the caches have it now. */
  again(): SyncedObject {
    return new SyncedObject(this.context, this.row, this, this.signal)
  }

  /** Another object of the namespace; undefined if the resource is not copied into members. */
  other(resource: ResourceName, name: string): SyncedObject | undefined {
    const row = syncedKindOf(resource)
    const { context, cluster, namespace, signal } = this
    return row && new SyncedObject(context, row, { cluster, namespace, name }, signal)
  }
}
