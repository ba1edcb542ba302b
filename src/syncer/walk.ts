// The walk of one reconcile, from its key: down into the member, then up from it. Each step tells the tenant if it
// fails.
import { isPlaceable } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { locatorOf } from './context/locator.ts'
import type { CachedObject } from './context/resources.ts'
import { Reconcile } from './context/scope.ts'
import type { SyncContext } from './context/sync-context.ts'
import { parseRequest, type ReconcileRequest } from './context/request.ts'
import { reconcileLeftover, reconcileNamespace } from './down/namespace.ts'
import { reconcileObject } from './down/object.ts'
import { reconcileRemoteSlice } from './down/remote-slice.ts'
import { reportEndpoints } from './report/endpoints.ts'
import { reconcileStatus } from './report/member-status.ts'
import { reportMissingClass } from './report/missing-class.ts'
import { aboutStatus, aboutRequest, tellingFailures } from './report/tell-failure.ts'
import { syncedKindOf } from './rules/synced-kinds.ts'
import { SyncedObject } from './rules/synced-object.ts'
import { reconcileClaimOwner } from './up/claim-owner.ts'
import { reconcileEvent } from './up/events.ts'
import { passOnDeletionOfHistory, reconcileHistory } from './up/history.ts'
import { madeKindOf, passOnDeletionOfMade, reconcileMade, type MadeKind } from './up/made.ts'
import { reconcileNode } from './up/nodes.ts'
import { passOnDeletionOfPod, reconcilePod } from './up/pods.ts'
import { reconcileSlice } from './up/slice.ts'
import { reconcileSpec } from './up/spec.ts'

/** Reconciles one key of the queue. `deleted`: upstream copies that were deleted since, by key. */
export async function reconcileKey(
  context: SyncContext,
  key: string,
  deleted: Map<string, CachedObject>,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const reconcile = new Reconcile(context, parseRequest(key), signal)
  if (reconcile.isHeld) {
    // When the adoption has ended, everything in the namespace is reconciled.
    deleted.delete(key)
    return undefined
  }
  if (reconcile.kind === 'event') return await reconcileEvent(reconcile)
  const copy = deleted.get(key)
  if (copy !== undefined) {
    await passOnDeletionOf(reconcile, copy)
    deleted.delete(key)
  }
  const synced = syncedObjectOf(reconcile)
  if (synced !== undefined) await walkCopied(synced)
  else {
    if (reconcile.kind === 'pod') await copyTenantsPod(reconcile)
    await tellingFailures(reconcile, aboutRequest(reconcile), () => walkOther(reconcile))
  }
  return undefined
}

async function passOnDeletionOf(reconcile: Reconcile, copy: CachedObject): Promise<void> {
  if (reconcile.kind === 'made:replicasets') return passOnDeletionOfHistory(reconcile, copy)
  const made = madeKindOfRequest(reconcile)
  return made === undefined ? passOnDeletionOfPod(reconcile, copy) : passOnDeletionOfMade(reconcile, made, copy)
}

/** Down: the copy. Up: what the member makes of it. */
async function walkCopied(synced: SyncedObject): Promise<void> {
  const copying = reconcileObject(synced)
  // While the member refuses a change, the state of its present copy is still reported.
  const copied = synced.row.status === undefined ? await copying : await copying.catch(() => undefined)
  const now = synced.again()
  await tellingFailures(now, aboutStatus(now), () => reportCopied(now, copied))
  await copying
}

async function reportCopied(synced: SyncedObject, copied: CachedObject | undefined): Promise<void> {
  const { resource, row } = synced
  if (resource === 'services') return reportEndpoints(synced, copied !== undefined)
  if (copied !== undefined) await reconcileSpec(synced)
  if (copied !== undefined && resource === 'persistentvolumeclaims') await reconcileClaimOwner(synced)
  if (copied !== undefined && resource === 'ingresses') await reportMissingClass(synced, copied)
  if (row.status) await reconcileStatus(synced.again(), row.status)
}

/** A pod that its tenant made is copied down like any workload, besides what is done for every pod. */
async function copyTenantsPod(reconcile: Reconcile): Promise<void> {
  const row = syncedKindOf('pods')
  const synced = row && new SyncedObject(reconcile.context, row, reconcile, reconcile.signal)
  if (synced === undefined) return
  const { object, copy } = synced
  if (object === undefined ? locatorOf(copy) !== undefined : isPlaceable(object)) await reconcileObject(synced)
}

/** Reconciles what is neither a copy of a tenant's object nor an Event. */
async function walkOther(reconcile: Reconcile): Promise<void> {
  switch (reconcile.kind) {
    case 'namespace':
      return reconcileNamespace(reconcile)
    case 'leftover':
      return reconcileLeftover(reconcile)
    case 'remoteSlice':
      return reconcileRemoteSlice(reconcile)
    case 'history':
      return reconcileHistory(reconcile)
    case 'pod':
      return reconcilePod(reconcile)
    case 'node':
      return reconcileNode(reconcile)
    case 'slice':
      return reconcileSlice(reconcile)
    default: {
      const made = madeKindOfRequest(reconcile)
      if (made !== undefined) await reconcileMade(reconcile, made)
    }
  }
}

function syncedObjectOf({ context, kind, cluster, namespace, name, signal }: Reconcile): SyncedObject | undefined {
  const row = syncedKindOf(kind)
  return row && new SyncedObject(context, row, { cluster, namespace, name }, signal)
}

const madePrefix = 'made:'

function madeKindOfRequest({ kind }: ReconcileRequest): MadeKind | undefined {
  return kind.startsWith(madePrefix) ? madeKindOf(kind.slice(madePrefix.length)) : undefined
}
