// One object: goes when its owners have gone; lets its dependents go first, or free, where its deletion says so.
import type { KubeClient } from '../../client/index.ts'
import type { ObjectMeta } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import type { Outcome } from '../../reconcile/index.ts'
import type { GraphObject, ObjectGraph, ObjectPlace } from './object-graph.ts'
import { inParts } from './in-parts.ts'
import { isDeletingInForeground, ownersOf, type GoneUids, type Owner } from './owners.ts'
import { tellWrongOwner } from './wrong-owner.ts'

export interface VisitContext {
  readonly graph: ObjectGraph
  readonly client: KubeClient
  readonly gone: GoneUids
  /** Asks for a visit of another object. */
  readonly enqueue: (place: ObjectPlace) => void
}

/** An owner's kind may be served later. */
const unresolvedSeconds = 300
/** Writes of one visit, until others have had their turn. */
const maxFreed = 50

/** One step; the change that it makes brings the next. Every write has the object's uid as a precondition. */
export async function visitObject(
  object: GraphObject,
  context: VisitContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { metadata } = object
  if (metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('orphan') === true)
    return freeDependents(object, context, signal)
  if (isDeletingInForeground(metadata)) return letDependentsGoFirst(object, context, signal)
  if (metadata.deletionTimestamp !== undefined || metadata.ownerReferences === undefined) return undefined
  const owners = await ownersOf(object, context, signal)
  for (const owner of owners) await tellWrongOwner(object, owner, context, signal)
  return judge(object, owners, context, signal)
}

async function judge(
  object: GraphObject,
  owners: readonly Owner[],
  context: VisitContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const having = (state: Owner['state']): readonly Owner[] => owners.filter((owner) => owner.state === state)
  const [absent, waiting] = [having('absent'), having('waiting')]
  if (having('unresolvable').length > 0) return { requeueAfterSeconds: unresolvedSeconds }
  if (having('solid').length > 0) {
    // It stays for the sake of the others.
    if (absent.length + waiting.length > 0) await dropOwners(object, [...absent, ...waiting], context, signal)
    return undefined
  }
  if (owners.length === 0) return undefined
  if (waiting.length > 0) {
    const dependents = await context.graph.dependents(object.place.cluster, object.metadata.uid ?? '', signal)
    if (dependents.length > 0) {
      if (await isInCircle(dependents, context, signal)) await stopBlocking(object, context, signal)
      return remove(object, 'Foreground', context, signal)
    }
  }
  const { finalizers = [] } = object.metadata
  const policy = finalizers.includes('orphan')
    ? 'Orphan'
    : finalizers.includes('foregroundDeletion')
      ? 'Foreground'
      : 'Background'
  return remove(object, policy, context, signal)
}

/** Has them all visited once. From then on they go by themselves, and each that goes asks about this one again. */
async function letDependentsGoFirst(
  object: GraphObject,
  context: VisitContext,
  signal: AbortSignal,
): Promise<undefined> {
  const dependents = await context.graph.dependents(object.place.cluster, object.metadata.uid ?? '', signal)
  for await (const place of inParts(dependents, signal)) {
    const dependent = await context.graph.get(place, signal)
    // Else two that own each other would have each other visited for ever.
    if (dependent !== undefined && !isDeletingInForeground(dependent.metadata)) context.enqueue(place)
  }
  return letGoWhereNothingBlocks(object, context, signal)
}

/**
 * Removes the finalizer `foregroundDeletion` once nothing that blocks is left. Asked for by each dependent that has gone, so it
 * looks at none of those that are left.
 */
export async function letGoWhereNothingBlocks(
  object: GraphObject,
  context: VisitContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { metadata, place } = object
  if (!isDeletingInForeground(metadata)) return
  if (await context.graph.isBlocked(place, metadata.uid ?? '', signal)) return
  await removeFinalizer(object, 'foregroundDeletion', context, signal)
}

/** Takes the object out of the owner references of its dependents, so many in one visit, then lets it go. */
async function freeDependents(object: GraphObject, context: VisitContext, signal: AbortSignal): Promise<undefined> {
  const { uid = '' } = object.metadata
  let freed = 0
  for await (const place of inParts(await context.graph.dependents(object.place.cluster, uid, signal), signal)) {
    const dependent = await context.graph.get(place, signal)
    const reference = dependent?.metadata.ownerReferences?.find((owner) => owner.uid === uid)
    if (dependent === undefined || reference === undefined) continue
    if (freed++ === maxFreed) {
      context.enqueue(object.place)
      return
    }
    await dropOwners(dependent, [{ reference, state: 'absent' }], context, signal)
  }
  await removeFinalizer(object, 'orphan', context, signal)
  return undefined
}

/** Whether a dependent waits for its own dependents already: then waiting for it could be for ever. */
async function isInCircle(
  dependents: readonly ObjectPlace[],
  { graph }: VisitContext,
  signal: AbortSignal,
): Promise<boolean> {
  for (const place of dependents) {
    const dependent = await graph.get(place, signal)
    if (dependent !== undefined && isDeletingInForeground(dependent.metadata)) return true
  }
  return false
}

async function stopBlocking(object: GraphObject, context: VisitContext, signal: AbortSignal): Promise<void> {
  const { ownerReferences = [] } = object.metadata
  if (!ownerReferences.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true)) return
  const free = ownerReferences.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
  await patchMetadata(object, { ownerReferences: free }, context, signal)
}

async function dropOwners(
  object: GraphObject,
  dropped: readonly Owner[],
  context: VisitContext,
  signal: AbortSignal,
): Promise<void> {
  const uids = new Set(dropped.map(({ reference }) => reference.uid))
  const ownerReferences = object.metadata.ownerReferences?.filter(({ uid }) => !uids.has(uid)) ?? []
  await patchMetadata(
    object,
    { ownerReferences: ownerReferences.length === 0 ? null : ownerReferences },
    context,
    signal,
  )
}

async function removeFinalizer(
  object: GraphObject,
  finalizer: string,
  context: VisitContext,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = object.metadata.finalizers?.filter((other) => other !== finalizer) ?? []
  await patchMetadata(object, { finalizers: finalizers.length === 0 ? null : finalizers }, context, signal)
}

/** Rejects Conflict where the object has changed: the next visit sees how. */
async function patchMetadata(
  { gvr, place, metadata }: GraphObject,
  change: Partial<Record<keyof ObjectMeta, unknown>>,
  { client }: VisitContext,
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion } = metadata
  const patch = { metadata: { uid, resourceVersion, ...change } }
  // Somebody else was faster: what was to go is gone.
  await client.patch(gvr, refOf(place), 'merge', patch, { signal }).catch(tolerate('NotFound'))
}

async function remove(
  { gvr, place, metadata }: GraphObject,
  propagationPolicy: 'Background' | 'Foreground' | 'Orphan',
  { client }: VisitContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { uid, resourceVersion } = metadata
  // As it was looked at: it may have got another owner since. Not in a circle, where we changed it a moment ago.
  await client
    .delete(gvr, refOf(place), {
      ...(uid === undefined ? {} : { uid }),
      ...(propagationPolicy === 'Foreground' || resourceVersion === undefined ? {} : { resourceVersion }),
      propagationPolicy,
      signal,
    })
    .catch(tolerate('NotFound'))
  return undefined
}

function refOf({ namespace, name }: ObjectPlace): { name: string; namespace?: string } {
  return namespace === '' ? { name } : { name, namespace }
}
