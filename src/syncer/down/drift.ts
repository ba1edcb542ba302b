// Changes that others make in copies: whether they are reported instead of corrected, and what the tenant is told.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { hasCopy, placedOn } from '#crds/index.ts'
import type { DriftedField } from '#syncer/context/drifts.ts'
import { inMember } from '#syncer/context/upstream.ts'
import { warnOnce } from '#syncer/report/warning-event.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import type { RemovedFields } from './keep-drift.ts'

/**
 * Whether the Placement of the tenant or an admin says so: of the object itself, or of all workloads of its namespace in
 * the member that it comes with.
 */
export function reportsDrift({ context, row, cluster, namespace, member, object }: SyncedObject): boolean {
  if (object === undefined) return false
  if (row.follows === 'decision') return placedOn(object as KubeObject)[member.name]?.drift === 'Report'
  let isReported = false
  for (const index of context.upstream.workloadsByMember)
    for (const workload of index.of(inMember(`${cluster}|${namespace}`, member.name))) {
      const copy = placedOn(workload as KubeObject)[member.name]
      if (!hasCopy(copy)) continue
      if (copy?.drift !== 'Report') return false
      isReported = true
    }
  return isReported
}

/** The fields that others have removed from the copy. */
export function removedFrom({ context, resource, cluster, namespace, name }: SyncedObject): RemovedFields {
  return context.drifts.removedFrom({ resource, cluster, namespace, name })
}

/** Notes what others have changed in the copy, and tells the tenant in an Event; the report on the copy follows. */
export async function tellDrift(synced: SyncedObject, fields: readonly DriftedField[]): Promise<void> {
  const { context, resource, cluster, namespace, name, object, member } = synced
  const text = context.drifts.note({ resource, cluster, namespace, name }, fields)
  if (text === undefined || object === undefined) return
  const message = `member cluster "${member.name}": ${text}`
  await warnOnce(synced, object, { reason: 'Drifted', message })
}

/** Forgets what others had changed: the copy is as it should be, or is gone. */
export function forgetDrift({ context, resource, cluster, namespace, name }: SyncedObject): void {
  context.drifts.note({ resource, cluster, namespace, name }, [])
}
