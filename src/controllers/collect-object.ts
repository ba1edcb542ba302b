// Garbage collection of one object: deletes the object when its owners are gone, and handles the finalizers
// `foregroundDeletion` (dependents go first) and `orphan` (dependents lose this owner).
import { createHash } from 'node:crypto'
import { setImmediate as nextEventLoopPass } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ObjectMeta, OwnerReference } from '#apimachinery/meta/index.ts'
import { newEvent } from '#crds/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient, ObjectRef } from '#client/index.ts'
import { isOwnFinalizer } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { GraphObject, ObjectGraph, ObjectKey } from '#reconcile/object-graph/index.ts'
import { type GoneOwners, isDeletingInForeground, type Owner, ownersOf } from './garbage-owners.ts'

export interface CollectContext {
  readonly graph: ObjectGraph
  readonly client: KubeClient
  readonly gone: GoneOwners
  /** Asks for a reconcile of another object. */
  readonly enqueue: (key: ObjectKey) => void
}

/** An owner's kind that is not served now may be served later. */
const unresolvableRetrySeconds = 300
/** Maximum number of dependents that one reconcile orphans, so that other keys are not kept waiting. */
const maxOrphaned = 50

/**
 * Takes one step of the collection; the change that it makes causes the next reconcile. Every write has the uid of the
 * object as a precondition.
 */
export async function reconcileObject(
  object: GraphObject,
  context: CollectContext,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const { metadata } = object
  if (metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('orphan') === true)
    return orphanDependents(object, context, signal)
  if (isDeletingInForeground(metadata)) return reconcileDependentsFirst(object, context, signal)
  if (metadata.deletionTimestamp !== undefined || metadata.ownerReferences === undefined) return undefined
  const owners = await ownersOf(object, context, signal)
  for (const owner of owners) await reportWrongOwner(object, owner, context, signal)
  return applyDecision(object, owners, context, signal)
}

async function applyDecision(
  object: GraphObject,
  owners: readonly Owner[],
  context: CollectContext,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const decision = decide(owners, object.metadata.finalizers ?? [])
  switch (decision.do) {
    case 'keep':
      return undefined
    case 'retry':
      return { requeueAfterSeconds: unresolvableRetrySeconds }
    case 'dropOwners':
      await dropOwners(object, decision.owners, context, signal)
      return undefined
    case 'delete': {
      const dependents = decision.foregroundIfDependents
        ? await context.graph.dependents(object.key.cluster, object.metadata.uid ?? '', signal)
        : []
      if (dependents.length === 0) return remove(object, decision.policy, context, signal)
      // The change causes the next reconcile, which knows the new resourceVersion.
      if ((await isInOwnerCycle(dependents, context, signal)) && (await stopBlocking(object, context, signal))) return
      return remove(object, 'Foreground', context, signal)
    }
  }
}

/** Enqueues all dependents once. Each one that is deleted later causes a check whether this owner is still blocked. */
async function reconcileDependentsFirst(
  object: GraphObject,
  context: CollectContext,
  signal: AbortSignal,
): Promise<undefined> {
  const dependents = await context.graph.dependents(object.key.cluster, object.metadata.uid ?? '', signal)
  for await (const key of inBatches(dependents, signal)) {
    const dependent = await context.graph.get(key, signal)
    // Two objects that own each other would otherwise enqueue each other forever.
    if (dependent !== undefined && !isDeletingInForeground(dependent.metadata)) context.enqueue(key)
  }
  return releaseIfUnblocked(object, context, signal)
}

/**
 * Removes the finalizer `foregroundDeletion` when no dependent blocks the deletion. It is called after the deletion of
 * each dependent, so its cost must not depend on the number of dependents left.
 */
export async function releaseIfUnblocked(
  object: GraphObject,
  context: CollectContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { metadata, key } = object
  if (!isDeletingInForeground(metadata)) return
  if (await context.graph.isBlocked(key, metadata.uid ?? '', signal)) return
  await removeFinalizer(object, 'foregroundDeletion', context, signal)
}

/**
 * Removes this owner from a limited number of dependents per reconcile, then removes the finalizer `orphan`. Dependents
 * of another object that has the same uid keep their owner. The finalizer stays while the object has finalizers of
 * syncers: it tells the syncers to leave the dependents in members.
 */
async function orphanDependents(object: GraphObject, context: CollectContext, signal: AbortSignal): Promise<undefined> {
  const { uid = '' } = object.metadata
  let orphaned = 0
  for await (const key of inBatches(await context.graph.dependents(object.key.cluster, uid, signal), signal)) {
    const dependent = await context.graph.get(key, signal)
    const reference = dependent?.metadata.ownerReferences?.find((owner) => owner.uid === uid)
    if (dependent === undefined || reference === undefined) continue
    if (await meansAnother(reference, { owner: object, dependent }, context, signal)) continue
    if (orphaned++ === maxOrphaned) {
      context.enqueue(object.key)
      return
    }
    await dropOwners(dependent, [{ reference, state: 'absent' }], context, signal)
  }
  if (object.metadata.finalizers?.some(isOwnFinalizer) === true) return
  await removeFinalizer(object, 'orphan', context, signal)
  return undefined
}

/** Whether a reference with this object's uid means another existing object, which has the same uid. */
async function meansAnother(
  reference: OwnerReference,
  { owner, dependent }: { readonly owner: GraphObject; readonly dependent: GraphObject },
  context: CollectContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { cluster, namespace, name } = owner.key
  const served = await context.graph.resourceOf(cluster, reference, signal)
  const isReachable = namespace === '' || namespace === dependent.key.namespace
  if (served?.resource === owner.resource && reference.name === name && isReachable) return false
  const metadata = { ...dependent.metadata, ownerReferences: [reference] }
  const [other] = await ownersOf({ ...dependent, metadata }, context, signal)
  return other?.state === 'solid' || other?.state === 'waiting'
}

/** Whether a dependent already waits for its own dependents: then both could wait for each other forever. */
async function isInOwnerCycle(
  dependents: readonly ObjectKey[],
  { graph }: CollectContext,
  signal: AbortSignal,
): Promise<boolean> {
  for (const key of dependents) {
    const dependent = await graph.get(key, signal)
    if (dependent !== undefined && isDeletingInForeground(dependent.metadata)) return true
  }
  return false
}

/** Stops the object from blocking its owners. Resolves with false if it did not block any. */
async function stopBlocking(object: GraphObject, context: CollectContext, signal: AbortSignal): Promise<boolean> {
  const { ownerReferences = [] } = object.metadata
  if (!ownerReferences.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true)) return false
  const unblocked = ownerReferences.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
  await patchMetadata(object, { ownerReferences: unblocked }, context, signal)
  return true
}

async function dropOwners(
  object: GraphObject,
  dropped: readonly Owner[],
  context: CollectContext,
  signal: AbortSignal,
): Promise<void> {
  const uids = new Set(dropped.map(({ reference }) => reference.uid))
  const kept = object.metadata.ownerReferences?.filter(({ uid }) => !uids.has(uid)) ?? []
  await patchMetadata(object, { ownerReferences: kept.length === 0 ? null : kept }, context, signal)
}

async function removeFinalizer(
  object: GraphObject,
  finalizer: string,
  context: CollectContext,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = object.metadata.finalizers?.filter((other) => other !== finalizer) ?? []
  await patchMetadata(object, { finalizers: finalizers.length === 0 ? null : finalizers }, context, signal)
}

/** Rejects with Conflict if the object has changed since it was read: the next reconcile sees the change. */
async function patchMetadata(
  { gvr, key, metadata }: GraphObject,
  change: Partial<Record<keyof ObjectMeta, unknown>>,
  { client }: CollectContext,
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion } = metadata
  const patch = { metadata: { uid, resourceVersion, ...change } }
  await client.patch(gvr, refOf(key), 'merge', patch, { signal }).catch(tolerate('NotFound'))
}

async function remove(
  object: GraphObject,
  propagationPolicy: 'Background' | 'Foreground' | 'Orphan',
  { client }: CollectContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { gvr, key, metadata } = object
  const { uid, resourceVersion } = metadata
  const options = { ...(uid !== undefined && { uid }), propagationPolicy, signal }
  try {
    // The resourceVersion is a precondition, because the object may have got another owner since.
    await client.delete(gvr, refOf(key), { ...options, ...(resourceVersion !== undefined && { resourceVersion }) })
  } catch (error) {
    if (isStatusError(error, 'NotFound')) return
    if (!isStatusError(error, 'Conflict')) throw error
    const live = await client.tryGet(gvr, refOf(key), { signal })
    if (live?.metadata.uid !== uid) return
    if (!isDeepStrictEqual(live?.metadata.ownerReferences, metadata.ownerReferences)) throw error
    // The owners are the same: frequent changes of the rest must not keep the object forever.
    await client.delete(gvr, refOf(key), options).catch(tolerate('NotFound'))
  }
}

function refOf({ namespace, name }: ObjectKey): ObjectRef {
  return namespace === '' ? { name } : { name, namespace }
}

type Decision =
  | { readonly do: 'keep' }
  /** Nothing is known about an owner: look again later. */
  | { readonly do: 'retry' }
  /** The object keeps its existing owners and loses these. */
  | { readonly do: 'dropOwners'; readonly owners: readonly Owner[] }
  /**
   * No owner is left. With `foregroundIfDependents`, an owner waits for this object: the object is deleted in the
   * foreground if it has dependents of its own, so that they go before the waiting owner.
   */
  | {
      readonly do: 'delete'
      readonly policy: 'Background' | 'Foreground' | 'Orphan'
      readonly foregroundIfDependents: boolean
    }

/** Decides about an object that is not being deleted itself. `finalizers` are those of the object. */
export function decide(owners: readonly Owner[], finalizers: readonly string[]): Decision {
  const inState = (state: Owner['state']): readonly Owner[] => owners.filter((owner) => owner.state === state)
  if (inState('unresolvable').length > 0) return { do: 'retry' }
  const [absent, waiting] = [inState('absent'), inState('waiting')]
  if (inState('solid').length > 0) {
    const dropped = [...absent, ...waiting]
    return dropped.length > 0 ? { do: 'dropOwners', owners: dropped } : { do: 'keep' }
  }
  if (owners.length === 0) return { do: 'keep' }
  return { do: 'delete', policy: policyOf(finalizers), foregroundIfDependents: waiting.length > 0 }
}

/** A finalizer that was set before the deletion decides how dependents are treated, as upstream does. */
function policyOf(finalizers: readonly string[]): 'Background' | 'Foreground' | 'Orphan' {
  if (finalizers.includes('orphan')) return 'Orphan'
  return finalizers.includes('foregroundDeletion') ? 'Foreground' : 'Background'
}

const events = { group: '', version: 'v1', resource: 'events' } as const

/** Writes the Event `OwnerRefInvalidNamespace` once per object and owner. Does nothing for valid references. */
async function reportWrongOwner(
  { key, apiVersion, kind, metadata }: GraphObject,
  { reference, wrongNamespace }: Owner,
  { client }: { client: KubeClient },
  signal: AbortSignal,
): Promise<void> {
  if (wrongNamespace === undefined) return
  const { uid = '' } = metadata
  const namespace = key.namespace === '' ? 'default' : key.namespace
  const suffix = createHash('sha256').update(`${uid}|${reference.uid}`).digest('hex').slice(0, 16)
  const text = `[${reference.apiVersion}/${reference.kind}, namespace: ${key.namespace}, name: ${reference.name}, uid: ${reference.uid}]`
  const now = timestamp(systemClock.now())
  const event = newEvent({
    metadata: { name: `${key.name}.${suffix}`.slice(-253), namespace },
    about: { apiVersion, kind, name: key.name, uid, ...(key.namespace && { namespace: key.namespace }) },
    type: 'Warning',
    reason: 'OwnerRefInvalidNamespace',
    message: `ownerRef ${text} does not exist in namespace "${key.namespace}"`,
    component: 'garbage-collector-controller',
    now,
  })
  // The Event exists already, or the namespace is being deleted.
  await client.create(events, event, { signal }).catch(tolerate('AlreadyExists', 'Forbidden', 'NotFound'))
}

/** Number of items per batch, which takes some tenths of a millisecond. */
const batchSize = 100

/** Yields the items in order and lets other work run after each batch. Rejects with signal.reason. */
export async function* inBatches<T>(items: readonly T[], signal: AbortSignal): AsyncGenerator<T> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % batchSize === 0) {
      await nextEventLoopPass()
      signal.throwIfAborted()
    }
    yield item
  }
}
