// The writes of a copy: applied, or replaced where apply is refused, or where the copy of a former object has what
// cannot change.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError } from '#apimachinery/status/index.ts'
import { syncerFieldManager } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { reportOtherPorts } from '#syncer/report/other-ports.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { deleteCopy } from './remove-copy.ts'
import { isRepeatedKey, replaceCopy, wasReplaced } from './replace-copy.ts'

interface Written {
  readonly current: CachedObject | undefined
  readonly desired: KubeObject
}

/**
 * Where the copy is of a deleted object that had this name, and has what cannot be changed (the data of an immutable
 * ConfigMap, the type of a Secret, the address of a Service), it is replaced.
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
      // Each time, the member may name one of the refused fields only.
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

async function writeCopy(
  { context, resource, gvr, signal }: SyncedObject,
  { current, desired }: Written,
): Promise<void> {
  const ref = refOf(desired)
  if (current?.metadata.deletionTimestamp !== undefined)
    throw conflict(gvr, ref.name, 'the copy in the member is still being deleted')
  const replaced = { desired, uid: current?.metadata.uid }
  if (wasReplaced(current)) {
    await replaceCopy(context.downstream, resource, replaced, signal)
    return
  }
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  try {
    await context.downstream.patch(gvr, ref, 'apply', desired, options)
  } catch (error) {
    if (!isRepeatedKey(error)) throw error
    await replaceCopy(context.downstream, resource, replaced, signal)
  }
}

/**
 * Gives a copy those fields of the upstream status from which its controller goes on, as long as it has none of its
 * own.
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
