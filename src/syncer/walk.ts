// The walk of one reconcile, from its key: down into the member, then up from it. Each step tells the tenant if it
// fails.
import { isPlaceable } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { locatorOf } from './context/locator.ts'
import type { CachedObject } from './context/resources.ts'
import { Reconcile } from './context/scope.ts'
import type { SyncContext } from './context/sync-context.ts'
import { parseVisit, type Visit } from './context/visit.ts'
import { visitLeftover, visitNamespace } from './down/namespace.ts'
import { visitObject } from './down/object.ts'
import { visitRemoteSlice } from './down/remote-slice.ts'
import { reportEndpoints } from './report/endpoints.ts'
import { visitStatus } from './report/member-status.ts'
import { reportMissingClass } from './report/missing-class.ts'
import { aboutStatus, aboutVisit, tellingFailures } from './report/tell-failure.ts'
import { syncedKindOf } from './rules/synced-kinds.ts'
import { SyncedObject } from './rules/synced-object.ts'
import { visitClaimOwner } from './up/claim-owner.ts'
import { visitEvent } from './up/events.ts'
import { passOnDeletionOfHistory, visitHistory } from './up/history.ts'
import { madeKindOf, passOnDeletionOfMade, visitMade, type MadeKind } from './up/made.ts'
import { visitNode } from './up/nodes.ts'
import { passOnDeletionOfPod, visitPod } from './up/pods.ts'
import { visitSlice } from './up/slice.ts'
import { visitSpec } from './up/spec.ts'

/** Reconciles one key of the queue. `deleted`: upstream copies that were deleted since, by key. */
export async function reconcileKey(
  context: SyncContext,
  key: string,
  deleted: Map<string, CachedObject>,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const reconcile = new Reconcile(context, parseVisit(key), signal)
  if (reconcile.kind === 'event') return await visitEvent(reconcile)
  const copy = deleted.get(key)
  if (copy !== undefined) {
    await passOnDeletionOf(reconcile, copy)
    deleted.delete(key)
  }
  const synced = syncedObjectOf(reconcile)
  if (synced !== undefined) await walkCopied(synced)
  else {
    if (reconcile.kind === 'pod') await copyTenantsPod(reconcile)
    await tellingFailures(reconcile, aboutVisit(reconcile), () => walkOther(reconcile))
  }
  return undefined
}

async function passOnDeletionOf(reconcile: Reconcile, copy: CachedObject): Promise<void> {
  if (reconcile.kind === 'made:replicasets') return passOnDeletionOfHistory(reconcile, copy)
  const made = madeKindOfVisit(reconcile)
  return made === undefined ? passOnDeletionOfPod(reconcile, copy) : passOnDeletionOfMade(reconcile, made, copy)
}

/** Down: the copy. Up: what the member makes of it. */
async function walkCopied(synced: SyncedObject): Promise<void> {
  const copying = visitObject(synced)
  // While the member refuses a change, what it makes of the copy that it has is still reported.
  const copied = synced.row.status === undefined ? await copying : await copying.catch(() => undefined)
  const now = synced.again()
  await tellingFailures(now, aboutStatus(now), () => reportCopied(now, copied))
  await copying
}

async function reportCopied(synced: SyncedObject, copied: CachedObject | undefined): Promise<void> {
  const { resource, row } = synced
  if (resource === 'services') return reportEndpoints(synced, copied !== undefined)
  if (copied !== undefined) await visitSpec(synced)
  if (copied !== undefined && resource === 'persistentvolumeclaims') await visitClaimOwner(synced)
  if (copied !== undefined && resource === 'ingresses') await reportMissingClass(synced, copied)
  if (row.status) await visitStatus(synced.again(), row.status)
}

/** A pod that its tenant made is copied down like any workload, besides what is done for every pod. */
async function copyTenantsPod(reconcile: Reconcile): Promise<void> {
  const row = syncedKindOf('pods')
  const synced = row && new SyncedObject(reconcile.context, row, reconcile, reconcile.signal)
  if (synced === undefined) return
  const { object, copy } = synced
  if (object === undefined ? locatorOf(copy) !== undefined : isPlaceable(object)) await visitObject(synced)
}

/** Reconciles what is neither a copy of a tenant's object nor an Event. */
async function walkOther(reconcile: Reconcile): Promise<void> {
  switch (reconcile.kind) {
    case 'namespace':
      return visitNamespace(reconcile)
    case 'leftover':
      return visitLeftover(reconcile)
    case 'remoteSlice':
      return visitRemoteSlice(reconcile)
    case 'history':
      return visitHistory(reconcile)
    case 'pod':
      return visitPod(reconcile)
    case 'node':
      return visitNode(reconcile)
    case 'slice':
      return visitSlice(reconcile)
    default: {
      const made = madeKindOfVisit(reconcile)
      if (made !== undefined) await visitMade(reconcile, made)
    }
  }
}

function syncedObjectOf({ context, kind, cluster, namespace, name, signal }: Reconcile): SyncedObject | undefined {
  const row = syncedKindOf(kind)
  return row && new SyncedObject(context, row, { cluster, namespace, name }, signal)
}

const madePrefix = 'made:'

function madeKindOfVisit({ kind }: Visit): MadeKind | undefined {
  return kind.startsWith(madePrefix) ? madeKindOf(kind.slice(madePrefix.length)) : undefined
}
