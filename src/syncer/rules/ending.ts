// The end of copies: the deletion in the member that follows the deletion of a workload, or of its namespace, upstream.
import { isOwnFinalizer, workloadKinds, type Locator, type WorkloadKind } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { orphanFinalizer } from '#syncer/context/orphans.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile, Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'

/**
 * Held: finalizers of others are on the workload. Its copy is being deleted too, but a finalizer of ours keeps it: its
 * pods keep running and its controller makes no new ones, as in a cluster. Foreground: the pods are deleted at once,
 * and the copy after them. Orphan: the pods stay.
 */
export type Ending = 'Held' | 'Foreground' | 'Orphan'

const foreground = 'foregroundDeletion'

/** True while the upstream namespace is being deleted: nothing new of it may begin in a member. */
export function isEndingNamespace({ upstreamNamespace }: Scope): boolean {
  return upstreamNamespace?.metadata.deletionTimestamp !== undefined
}

/** Whether the workload is being deleted without its dependents. */
export function isOrphaning({ upstream }: SyncContext, { metadata }: CachedObject): boolean {
  const { uid, deletionTimestamp, finalizers } = metadata
  return (
    deletionTimestamp !== undefined && (finalizers?.includes(orphanFinalizer) === true || upstream.orphaning.has(uid))
  )
}

/** How the copy ends of a workload that is being deleted, or that the member should not have. */
export function endingOf(
  context: SyncContext,
  object: CachedObject | undefined,
  { isNamespaceEnding }: { isNamespaceEnding: boolean },
): Ending {
  const { deletionTimestamp, finalizers = [] } = object?.metadata ?? {}
  if (object === undefined || deletionTimestamp === undefined) return 'Foreground'
  if (isNamespaceEnding || object.kind === 'Pod') return 'Foreground'
  if (isOrphaning(context, object)) return 'Orphan'
  if (finalizers.includes(foreground)) return 'Foreground'
  return finalizers.every(isOwnFinalizer) ? 'Foreground' : 'Held'
}

/**
 * Whether a controller in the member would make another pod in place of this one though its workload, or its namespace,
 * is ending. The deletion of the pod is not passed on then: the copy of the workload is deleted first, and garbage
 * collection in the member deletes the pod after its controller. Asks the server, because the deletion of a pod may be
 * seen before that of its namespace.
 */
export async function wouldBeReplaced(reconcile: Reconcile, live: CachedObject): Promise<boolean> {
  const root = rootOf(reconcile, live)
  if (root === undefined) return false
  if (root === 'gone') return true
  const { kind, locator } = root
  const { context, namespace, signal } = reconcile
  const { resource } = kind.gvr
  const isEnding = (object: CachedObject | undefined, isNamespaceEnding: boolean): boolean =>
    isNamespaceEnding ||
    object?.metadata.uid !== locator.uid ||
    (object.metadata.deletionTimestamp !== undefined &&
      endingOf(context, object, { isNamespaceEnding }) === 'Foreground')
  let ends = isEnding(reconcile.upstream(resource, locator.name), isEndingNamespace(reconcile))
  if (!ends) {
    const client = reconcile.upstreamClient
    const [space, object] = await Promise.all([
      client.tryGet(gvrs.namespaces, { name: namespace }, { signal }),
      client.tryGet(gvrs[resource], { namespace, name: locator.name }, { signal }),
    ])
    ends = isEnding(object, space?.metadata.deletionTimestamp !== undefined)
  }
  if (ends) reconcile.enqueueCopy(resource, locator.name)
  return ends
}

interface Root {
  readonly kind: WorkloadKind
  readonly locator: Locator
}

/**
 * The copy to which a pod in the member belongs, through its controllers. Undefined: nothing replaces the pod. `gone`:
 * one of its controllers has gone, so garbage collection in the member deletes the others.
 */
function rootOf(scope: Scope, live: CachedObject): Root | 'gone' | undefined {
  // Three: the longest chain is pod, Job, CronJob.
  for (let depth = 0, one = live; depth < 3; depth++) {
    const controller = controllerOf(one)
    const kind = workloadKinds.find((row) => row.kind === controller?.kind && row.apiVersion === controller.apiVersion)
    if (controller === undefined || kind === undefined) return undefined
    const owner = scope.live(kind.gvr.resource, controller.name)
    if (owner?.metadata.uid !== controller.uid) return depth === 0 ? undefined : 'gone'
    // The pod's own controller is being deleted and makes no pods any more.
    if (depth === 0 && owner.metadata.deletionTimestamp !== undefined) return undefined
    const locator = locatorOf(owner)
    if (locator !== undefined) return { kind, locator }
    one = owner
  }
  return undefined
}
