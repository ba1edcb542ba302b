// The upstream copy of an object that a member made, a pod or another: created with the member's uid, given its status,
// and deleted on one side when it is gone on the other.
import type { Int64, KubeObject } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { canonicalJson, keepUidHeader, memberUidAnnotation } from '#crds/index.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { memberUid } from '#syncer/rules/entitlement.ts'

/** The form of uids that members may choose for an object upstream. */
const uidForm = /^[\w-]{1,64}$/

/** How objects of a kind are deleted. */
export interface Deletion {
  readonly gracePeriodSeconds?: Int64
  readonly propagationPolicy?: 'Background' | 'Orphan'
}

/** The upstream copy is gone: deletes the member's object, if it is the one of that copy. */
export async function passOnDeletion(
  reconcile: Reconcile,
  resource: ResourceName,
  copy: CachedObject,
  deletion: Deletion,
): Promise<void> {
  if (!reconcile.isOurs) return
  const live = reconcile.live(resource, reconcile.name)
  if (live === undefined || live.metadata.uid !== memberUid(copy) || live.metadata.deletionTimestamp !== undefined)
    return
  await reconcile.context.guard.confirmGone(reconcile.on(resource), { uid: copy.metadata.uid ?? '' })
  await deleteLive(reconcile, resource, live, deletion)
}

/** Deletes the object in the member, unless another one has taken its name. */
export async function deleteLive(
  { context, signal }: Reconcile,
  resource: ResourceName,
  { metadata: { namespace = '', name = '', uid } }: CachedObject,
  deletion: Deletion,
): Promise<void> {
  await context.downstream
    .delete(gvrs[resource], { namespace, name }, { ...(uid && { uid }), ...deletion, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/**
 * Deletes the upstream copy after asking the member, not only its cache, that the object is gone, and upstream which
 * object it is a copy of: an ordinary cluster is told that after the creation, and our cache may lag.
 */
export async function removeCopy(
  reconcile: Reconcile,
  resource: ResourceName,
  copy: CachedObject,
  deletion: Deletion,
): Promise<void> {
  const { context, name, ref, memberNamespace, signal } = reconcile
  if (memberNamespace === undefined) return
  const live = await context.downstream.tryGet(gvrs[resource], { namespace: memberNamespace, name }, { signal })
  if (live !== undefined && live.metadata.uid === memberUid(copy)) return
  const client = reconcile.upstreamClient
  const current = await client.tryGet(gvrs[resource], ref, { signal })
  if (current === undefined || (live !== undefined && live.metadata.uid === memberUid(current))) return
  const { uid } = copy.metadata
  await client
    .delete(gvrs[resource], ref, { ...(uid && { uid }), ...deletion, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/**
 * Creates the upstream copy with the uid and status of the member's object. Undefined if there is one that our cache
 * lacks.
 */
export async function createCopy(
  reconcile: Reconcile,
  resource: ResourceName,
  live: CachedObject,
  object: KubeObject,
): Promise<KubeObject | undefined> {
  const { ref, signal } = reconcile
  const client = reconcile.upstreamClient
  let created: KubeObject
  try {
    const isUid = uidForm.test(live.metadata.uid ?? '')
    const options = { ...(isUid && { headers: { [keepUidHeader]: 'true' } }), signal }
    created = await client.create<KubeObject>(gvrs[resource], object, options)
  } catch (error) {
    // Our cache is behind: the event of the existing object causes the next reconcile.
    if (isStatusError(error, 'AlreadyExists')) return undefined
    throw error
  }
  if (created.metadata.uid === live.metadata.uid) return created
  // The server has set a uid of its own, as an ordinary cluster does: the member's uid is kept in an annotation.
  const metadata = { annotations: { [memberUidAnnotation]: live.metadata.uid } }
  return await client.patch(gvrs[resource], ref, 'merge', { metadata }, { signal })
}

/** Gives the upstream copy the status of the member's object, if it differs. */
export async function copyStatus(
  reconcile: Reconcile,
  resource: ResourceName,
  live: CachedObject,
  copy: CachedObject,
): Promise<void> {
  const { ref, signal } = reconcile
  const [was, is] = [copy, live].map((one) => (one['status'] ?? {}) as Record<string, unknown>)
  if (was === undefined || is === undefined || canonicalJson(was) === canonicalJson(is)) return
  // A merge patch, not an update: the cached object has the annotation that only lists over all clusters have.
  const patch = { metadata: { uid: copy.metadata.uid }, status: replacingPatch(was, is) }
  await reconcile.upstreamClient.patch(gvrs[resource], ref, 'merge', patch, { subresource: 'status', signal })
}
