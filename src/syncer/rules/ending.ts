// How copies end: what is asked of the member when a workload, or its whole namespace, is being deleted upstream.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { isOwnFinalizer, workloadKinds, type Locator, type WorkloadKind } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import {
  downstreamNamespaceOf,
  downstreamObject,
  locatorOf,
  upstreamObject,
  visitKindOf,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'

type CachedObject = DeepReadonly<KubeObject>
type UpstreamNamespace = Pick<Visit, 'cluster' | 'namespace'>

/**
 * Held: finalizers of others are on the workload. Its copy is being deleted too, and a finalizer of ours keeps it, so its pods run
 * on and its controller makes none, as in a cluster. Foreground: its pods go at once, and the copy after them.
 */
export type Ending = 'Held' | 'Foreground'

const foreground = 'foregroundDeletion'
const orphan = 'orphan'

/** True while the upstream namespace is being deleted: nothing new of it may begin in a member. */
export function isEndingNamespace(context: SyncContext, { cluster, namespace }: UpstreamNamespace): boolean {
  const found = upstreamObject(context, 'namespaces', { cluster, namespace: '', name: namespace })
  return found?.metadata.deletionTimestamp !== undefined
}

/** How the copy of a workload that is being deleted ends, or of which a member should have none. */
export function endingOf(
  object: CachedObject | undefined,
  { isNamespaceEnding }: { isNamespaceEnding: boolean },
): Ending {
  const { deletionTimestamp, finalizers = [] } = object?.metadata ?? {}
  if (deletionTimestamp === undefined || isNamespaceEnding || object?.kind === 'Pod') return 'Foreground'
  if (finalizers.includes(foreground) || finalizers.includes(orphan)) return 'Foreground'
  return finalizers.every(isOwnFinalizer) ? 'Foreground' : 'Held'
}

/**
 * Whether a controller in the member would make another pod in place of this one though its workload, or its namespace, is ending.
 * The deletion of the pod is not passed on then: the copy of the workload is deleted first, and garbage collection in the member
 * deletes the pod after its controller. Asks the server, because the deletion of a pod may be seen before that of its namespace.
 */
export async function wouldBeReplaced(
  context: SyncContext,
  visit: UpstreamNamespace,
  live: CachedObject,
  signal: AbortSignal,
): Promise<boolean> {
  const root = rootOf(context, visit, live)
  if (root === undefined) return false
  if (root === 'gone') return true
  const { kind, locator } = root
  const { cluster, namespace } = visit
  const isEnding = (object: CachedObject | undefined, isNamespaceEnding: boolean): boolean =>
    isNamespaceEnding ||
    object?.metadata.uid !== locator.uid ||
    (object.metadata.deletionTimestamp !== undefined && endingOf(object, { isNamespaceEnding }) === 'Foreground')
  const ref = { namespace, name: locator.name }
  const cached = upstreamObject(context, kind.gvr.resource, { cluster, ...ref })
  let ends = isEnding(cached, isEndingNamespace(context, visit))
  if (!ends) {
    const client = context.upstream.client(cluster)
    const [space, object] = await Promise.all([
      client.tryGet(gvrs.namespaces, { name: namespace }, { signal }),
      client.tryGet(gvrs[kind.gvr.resource], ref, { signal }),
    ])
    ends = isEnding(object, space?.metadata.deletionTimestamp !== undefined)
  }
  if (ends) context.enqueue({ kind: visitKindOf(kind.gvr.resource), cluster, ...ref })
  return ends
}

interface Root {
  readonly kind: WorkloadKind
  readonly locator: Locator
}

/**
 * The copy to which a pod in the member belongs, through its controllers. Undefined: nothing replaces the pod. `gone`: one of its
 * controllers has gone, so garbage collection in the member deletes the others.
 */
function rootOf(context: SyncContext, visit: UpstreamNamespace, live: CachedObject): Root | 'gone' | undefined {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return undefined
  // Three: the longest chain is pod, Job, CronJob.
  for (let depth = 0, one = live; depth < 3; depth++) {
    const controller = one.metadata.ownerReferences?.find((owner) => owner.controller === true)
    const kind = workloadKinds.find((row) => row.kind === controller?.kind && row.apiVersion === controller.apiVersion)
    if (controller === undefined || kind === undefined) return undefined
    const owner = downstreamObject(context, kind.gvr.resource, memberNamespace, controller.name)
    if (owner?.metadata.uid !== controller.uid) return depth === 0 ? undefined : 'gone'
    // Its own controller makes no pod any more.
    if (depth === 0 && owner.metadata.deletionTimestamp !== undefined) return undefined
    const locator = locatorOf(owner)
    if (locator !== undefined) return { kind, locator }
    one = owner
  }
  return undefined
}
