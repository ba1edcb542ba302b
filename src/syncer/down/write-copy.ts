// The writes of a copy: apply; create or update where apply is refused; deletion and creation where the copy is of a
// former object and has fields that cannot be changed.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import { adoptedObject, syncerFieldManager } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { reportOtherPorts } from '#syncer/report/other-ports.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { isGrowing } from './claims-with-data.ts'
import { deleteCopy } from './remove-copy.ts'
import { removedFrom, reportsDrift, tellDrift } from './drift.ts'
import { driftWithoutOwners, writeBesideDrift } from './keep-drift.ts'
import { ownAlone } from './own-alone.ts'
import { isRepeatedKey, replaceCopy, wasReplaced } from './replace-copy.ts'

interface Written {
  readonly current: CachedObject | undefined
  readonly desired: KubeObject
}

/**
 * Writes the copy. If the copy in the member is of a deleted object of the same name, and has fields that cannot be
 * changed (the data of an immutable ConfigMap, the type of a Secret, the address of a Service), it is created again.
 */
export async function writeOrReplace(synced: SyncedObject, object: CachedObject, written: Written): Promise<void> {
  const { context, row, gvr, signal } = synced
  const { current, desired } = written
  try {
    await writeCopy(synced, written)
  } catch (error) {
    if (!isStatusError(error, 'Invalid')) throw error
    const causes = error.status.details?.causes ?? []
    const fields = causes.map(({ field = '' }) => field)
    const less = row.withoutRefused?.(desired, fields)
    if (less !== undefined) {
      // The member may name only one of the refused fields at a time, so this may happen again.
      await writeOrReplace(synced, object, { current, desired: less })
      const given = await context.downstream.get<KubeObject>(gvr, refOf(desired), { signal })
      await reportOtherPorts(synced, object, given)
      return
    }
    if (current === undefined || !isOfAnother(current, object)) throw error
    await deleteCopy(synced, current)
    await writeCopy(synced, { current: undefined, desired })
  }
}

function refOf({ metadata: { namespace = '', name = '' } }: CachedObject): {
  readonly namespace: string
  readonly name: string
} {
  return { namespace, name }
}

async function writeCopy(synced: SyncedObject, { current, desired }: Written): Promise<void> {
  const { context, resource, gvr, signal } = synced
  const ref = refOf(desired)
  if (current?.metadata.deletionTimestamp !== undefined)
    throw conflict(gvr, ref.name, 'the copy in the member is still being deleted')
  const replaced = { desired, uid: current?.metadata.uid }
  if (current !== undefined && wasReplaced(current)) {
    const drift = reportsDrift(synced) ? driftWithoutOwners(current, desired) : undefined
    if (drift !== undefined && drift.length > 0) {
      await tellDrift(synced, drift)
      return
    }
    await replaceCopy(context.downstream, resource, replaced, signal)
    return
  }
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  if (synced.adopted !== undefined && adoptedObject(synced.object) !== undefined) {
    const live = await context.downstream.tryGet<KubeObject>(gvr, ref, { signal })
    if (live !== undefined) await ownAlone(context.downstream, gvr, { live, signal })
  }
  if (current !== undefined && reportsDrift(synced)) {
    const removed = removedFrom(synced)
    await tellDrift(synced, await writeBesideDrift(context.downstream, { gvr, ref, current, desired, removed, signal }))
    return
  }
  const { object, copy: checked } = synced
  // Claims were checked for this version of the copy: a request that is late must not undo what was decided since.
  const grows = object?.kind === 'StatefulSet' && isGrowing(synced, object)
  const resourceVersion = grows ? checked?.metadata.resourceVersion : undefined
  const applied = resourceVersion === undefined ? {} : { metadata: { ...desired.metadata, resourceVersion } }
  try {
    await context.downstream.patch(gvr, ref, 'apply', { ...desired, ...applied }, options)
  } catch (error) {
    // The reconcile is repeated before the tenant is told of a failure.
    if (resourceVersion !== undefined && isStatusError(error, 'Conflict')) throw serviceUnavailable(error.message)
    if (!isRepeatedKey(error)) throw error
    await replaceCopy(context.downstream, resource, replaced, signal)
  }
}

/**
 * Writes the fields of the upstream status from which the controller continues on a copy, as long as the copy has none
 * of its own.
 */
export async function beginStatus(
  { context, row, gvr, name, memberNamespace = '', signal }: SyncedObject,
  object: CachedObject,
  current: CachedObject | undefined,
): Promise<void> {
  const [known, own] = [object, current].map((one) => (one?.['status'] ?? {}) as Record<string, unknown>)
  const missing = (row.beginsWith ?? []).filter((field) => known?.[field] !== undefined && own?.[field] === undefined)
  if (missing.length === 0) return
  const status = Object.fromEntries(missing.map((field) => [field, known?.[field]]))
  const ref = { namespace: memberNamespace, name }
  await context.downstream.patch(gvr, ref, 'merge', { status }, { subresource: 'status', signal })
}

/** True for the copy of a deleted object that had this name. */
export function isOfAnother(copy: CachedObject, { metadata: { uid } }: CachedObject): boolean {
  const locator = locatorOf(copy)
  return locator !== undefined && locator.uid !== uid
}
