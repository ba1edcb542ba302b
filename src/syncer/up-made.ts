// Objects that controllers of a member make for a workload, other than pods, ReplicaSets and EndpointSlices: the Jobs of a
// CronJob, the claims of a StatefulSet, the revisions of a template. They are copied upstream with the member's uid; a
// deletion upstream is passed on.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { memberAnnotation, placedOnAnnotation } from '../crds/index.ts'
import { isSubset } from './is-subset.ts'
import { copyStatus, createCopy, deleteLive, memberUid, passOnDeletion, removeCopy } from './member-made-copy.ts'
import { gvrs, type ResourceName } from './resources/resources.ts'
import {
  downstreamNamespaceOf,
  downstreamObject,
  isOurs,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import { madeUp } from './transform/up.ts'
import { ownerUpstream } from './up-owner.ts'

type CachedObject = DeepReadonly<KubeObject>

export interface MadeKind {
  readonly resource: ResourceName
  /** The object has an owner upstream, without which it is not copied. */
  readonly isOwned: boolean
  readonly hasStatus: boolean
}

export const madeKinds: readonly MadeKind[] = [
  { resource: 'jobs', isOwned: true, hasStatus: true },
  { resource: 'controllerrevisions', isOwned: true, hasStatus: false },
  { resource: 'persistentvolumeclaims', isOwned: false, hasStatus: true },
]

const byResource = new Map(madeKinds.map((kind) => [kind.resource, kind]))

/** The row of a resource; undefined if members make none that are copied so. */
export function madeKindOf(resource: string): MadeKind | undefined {
  return byResource.get(resource as ResourceName)
}

const deletion = { propagationPolicy: 'Background' } as const

/** True for an upstream object that this or another member made. */
function isMade({ metadata: { annotations = {} } }: CachedObject): boolean {
  return annotations[memberAnnotation] !== undefined && annotations[placedOnAnnotation] === undefined
}

/** Makes the upstream copy match the member's object, and passes a deletion of the copy on to the member. */
export async function visitMade(
  context: SyncContext,
  kind: MadeKind,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return
  const { resource } = kind
  const live = downstreamObject(context, resource, memberNamespace, visit.name)
  const copy = upstreamObject(context, resource, visit)
  const isTheirs = live !== undefined && locatorOf(live) === undefined && isOurs(context, memberNamespace)
  if (copy !== undefined && copy.metadata.annotations?.[memberAnnotation] !== context.member.name) return
  if (!isTheirs || (copy !== undefined && memberUid(copy) !== live.metadata.uid)) {
    if (copy !== undefined && isMade(copy)) await removeCopy(context, resource, visit, { copy, deletion }, signal)
    return
  }
  const isEnding = live.metadata.deletionTimestamp !== undefined
  if (copy === undefined) {
    if (!isEnding) await createMade(context, kind, visit, live, signal)
    return
  }
  if (copy.metadata.deletionTimestamp !== undefined && !isEnding)
    await deleteLive(context, resource, memberNamespace, { live, deletion }, signal)
  await updateMade(context, kind, visit, live, copy, signal)
}

/** The upstream copy is gone: deletes the member's object, if it is the one of that copy. */
export async function passOnDeletionOfMade(
  context: SyncContext,
  { resource }: MadeKind,
  visit: Visit,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  await passOnDeletion(context, resource, visit, { copy, deletion }, signal)
}

async function createMade(
  context: SyncContext,
  { resource, isOwned }: MadeKind,
  visit: Visit,
  live: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const owner = ownerUpstream(context, visit, live)
  if (owner === undefined && isOwned) return
  const object = madeUp(live, { namespace: visit.namespace, member: context.member.name, owner })
  await createCopy(context, resource, visit, { live, object }, signal)
}

async function updateMade(
  context: SyncContext,
  { resource, hasStatus }: MadeKind,
  visit: Visit,
  live: CachedObject,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, namespace, name } = visit
  const client = context.upstream.client(cluster)
  const owner = ownerUpstream(context, visit, live)
  const {
    metadata: _metadata,
    status: _status,
    ...content
  } = madeUp(live, {
    namespace,
    member: context.member.name,
    owner,
  })
  const { uid } = copy.metadata
  if (!isSubset(copy, content))
    await client.patch(gvrs[resource], { namespace, name }, 'merge', { ...content, metadata: { uid } }, { signal })
  if (hasStatus) await copyStatus(context, resource, visit, { live, copy }, signal)
}
