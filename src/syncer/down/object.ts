// One upstream object and its copy in the member: apply the copy, keep it current, delete it.
import { type KubeObject, type Int64 } from '#apimachinery/meta/index.ts'
import { conflict, forbidden, isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { keyFor, type DeepReadonly } from '#client/index.ts'
import {
  appliedAnnotation,
  contentHash,
  hasEnded,
  memberStatusAnnotation,
  memberUidAnnotation,
  placedOn,
  syncerFieldManager,
  syncerFinalizer,
  templateOf,
  upstreamFinalizer,
  type MemberClass,
} from '#crds/index.ts'
import { claimsOfOrdinals, goesWithOwner, refuseOtherVolume } from './claims-with-data.ts'
import { endingOf, isEndingNamespace } from '#syncer/rules/ending.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import { ensureNamespace } from './ensure-namespace.ts'
import { deleteNamespacesOf } from './namespace.ts'
import { clearError, clearedMemberStatus, clearReport, patchWithoutReport } from '#syncer/report/member-status.ts'
import { isRepeatedKey, replaceCopy, wasReplaced } from './replace-copy.ts'
import { reportOtherPorts } from '#syncer/report/other-ports.ts'
import { accountReferences, referencesOf, type Reference } from '#syncer/context/references.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { isScaled } from '#syncer/rules/scaled.ts'
import { syncedKindOf, syncedKinds, type SyncedKind } from '#syncer/rules/synced-kinds.ts'
import { tellingFailures } from '#syncer/report/tell-failure.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  isOurs,
  locatorOf,
  ownerCluster,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import { priorityClassIn } from '#syncer/transform/priority-class.ts'

/**
 * Makes the copy in the member match the upstream object, and tells the tenant if that fails. Returns the upstream object if it
 * should have a copy.
 */
export async function visitObject(
  context: SyncContext,
  kind: SyncedKind,
  visit: Visit,
  signal: AbortSignal,
): Promise<DeepReadonly<KubeObject> | undefined> {
  const { resource } = kind
  const { cluster, namespace, name } = visit
  const subject = { resource, cluster, namespace, name }
  const about = { step: `${resource} ${cluster}|${namespace}/${name}`, subject: () => subject }
  return await tellingFailures(context, about, () => makeCopy(context, kind, visit, signal), signal)
}

async function makeCopy(
  context: SyncContext,
  kind: SyncedKind,
  visit: Visit,
  signal: AbortSignal,
): Promise<DeepReadonly<KubeObject> | undefined> {
  const object = upstreamObject(context, kind.resource, visit)
  const view = context.view(visit.cluster, visit.namespace)
  const isWanted = object !== undefined && kind.wanted(object, view, context.member.name)
  const isNamespaceEnding = isEndingNamespace(context, visit)
  if (isWanted && object.metadata.deletionTimestamp === undefined && !isNamespaceEnding) {
    await applyObject(context, kind, object, visit, signal)
    await clearError(context, kind, visit, signal)
    return object
  }
  // As in a cluster, pods that end have what they refer to, and clients find them, until it is gone upstream.
  if (isWanted && kind.follows !== 'decision') return isNamespaceEnding ? undefined : object
  await removeObject(context, kind, object, visit, signal)
  await tellAbsence(context, kind, object, visit, signal)
  return undefined
}

/** Removes what this member said of a copy that is gone. */
async function tellAbsence(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const namespace = downstreamNamespaceOf(context, visit)
  const copy = namespace && downstreamObject(context, kind.resource, namespace, visit.name)
  const reports = kind.status !== undefined && !kind.finalizes && kind.pinnedBy === undefined
  // While there is a copy, visits of its status report on it.
  if (object === undefined || !reports || copy !== undefined) {
    await clearError(context, kind, visit, signal)
    return
  }
  await clearReport(context, kind, visit, signal)
}

async function applyObject(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const { name } = visit
  const known = downstreamNamespaceOf(context, visit)
  const before = known === undefined ? undefined : downstreamObject(context, kind.resource, known, name)
  if (before === undefined && hasRun(object)) return
  refuseNodeName(kind, object, name)
  if (kind.pinnedBy !== undefined && before === undefined) {
    if (goesWithOwner(context, object, visit)) return
    await refuseOtherVolume(context, object, known, signal)
  }
  if (kind.finalizes || kind.pinnedBy !== undefined) await prepare(context, kind, object, visit, signal)
  const namespace = await ensureNamespace(context, visit, signal)
  if (kind.workload) await applyReferences(context, { object, before }, visit, signal)
  const current = downstreamObject(context, kind.resource, namespace, name)
  const desired = desiredCopy(context, kind, object, current, visit)
  if (kind.pinnedBy !== undefined && current !== undefined && isOfAnother(current, object))
    await deleteCopy(context, kind, current, { namespace, grace: undefined }, signal)
  refuseForeign(kind, current, desired, visit)
  const ref = { namespace, name }
  if (current === undefined || !isSubset(current, desired)) {
    if (kind.workload && current === undefined) await applyPreceding(context, visit, signal)
    await writeOrReplace(context, kind, { object, current, desired, visit }, ref, signal)
  }
  if (kind.beginsWith) await beginStatus(context, kind, { object, current }, ref, signal)
}

/**
 * Where the copy is of a deleted object that had this name, and has what cannot be changed (the data of an immutable ConfigMap,
 * the type of a Secret, the address of a Service), it is replaced.
 */
async function writeOrReplace(
  context: SyncContext,
  kind: SyncedKind,
  { object, visit, ...copy }: Written & { readonly object: DeepReadonly<KubeObject>; readonly visit: Visit },
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  const { current, desired } = copy
  try {
    await writeCopy(context, kind, copy, ref, signal)
  } catch (error) {
    if (!isStatusError(error, 'Invalid')) throw error
    const causes = error.status.details?.causes ?? []
    const fields = causes.map(({ field = '' }) => field)
    const less = kind.withoutRefused?.(desired, fields)
    if (less !== undefined) {
      // Each time, the member may name one of the refused fields only.
      await writeOrReplace(context, kind, { object, current, desired: less, visit }, ref, signal)
      const given = await context.downstream.get<KubeObject>(gvrs[kind.resource], ref, { signal })
      await reportOtherPorts(context, object, given, visit, signal)
      return
    }
    if (current === undefined || !isOfAnother(current, object)) throw error
    await deleteCopy(context, kind, current, { namespace: ref.namespace, grace: undefined }, signal)
    await writeCopy(context, kind, { current: undefined, desired }, ref, signal)
  }
}

interface Written {
  readonly current: DeepReadonly<KubeObject> | undefined
  readonly desired: KubeObject
}

async function writeCopy(
  { downstream }: SyncContext,
  { resource }: SyncedKind,
  { current, desired }: Written,
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  if (current?.metadata.deletionTimestamp !== undefined)
    throw conflict(gvrs[resource], ref.name, 'the copy in the member is still being deleted')
  const replaced = { desired, uid: current?.metadata.uid }
  if (wasReplaced(current)) {
    await replaceCopy(downstream, resource, replaced, ref, signal)
    return
  }
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  try {
    await downstream.patch(gvrs[resource], ref, 'apply', desired, options)
  } catch (error) {
    if (!isRepeatedKey(error)) throw error
    await replaceCopy(downstream, resource, replaced, ref, signal)
  }
}

/** Gives a copy those fields of the upstream status from which its controller goes on, as long as it has none of its own. */
async function beginStatus(
  { downstream }: SyncContext,
  { resource, beginsWith = [] }: SyncedKind,
  { object, current }: { object: DeepReadonly<KubeObject>; current: DeepReadonly<KubeObject> | undefined },
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  const [known, own] = [object, current].map((one) => (one?.['status'] ?? {}) as Record<string, unknown>)
  const missing = beginsWith.filter((field) => known?.[field] !== undefined && own?.[field] === undefined)
  if (missing.length === 0) return
  const status = Object.fromEntries(missing.map((field) => [field, known?.[field]]))
  await downstream.patch(gvrs[resource], ref, 'merge', { status }, { subresource: 'status', signal })
}

/** A pod that a member once had, or a Job that has ended, is not created again, there or anywhere. */
function hasRun(object: DeepReadonly<KubeObject>): boolean {
  return hasEnded(object) || (object.kind === 'Pod' && object.metadata.annotations?.[memberUidAnnotation] !== undefined)
}

/** A node that the tenant names would evade the scheduler of the member, and all that it checks. */
function refuseNodeName(kind: SyncedKind, object: DeepReadonly<KubeObject>, name: string): void {
  if (kind.workload === undefined || !podSpecOf(object)?.['nodeName']) return
  throw forbidden(
    gvrs[kind.resource],
    name,
    'the template has nodeName: the scheduler of a member cluster chooses the node',
  )
}

function desiredCopy(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  current: DeepReadonly<KubeObject> | undefined,
  visit: Visit,
): KubeObject {
  const { cluster, namespace } = visit
  const clusterId = context.upstream.ids.idOf(cluster)
  if (clusterId === undefined)
    throw conflict(gvrs[kind.resource], visit.name, `the id of logical cluster "${cluster}" is not known yet`)
  const automount = kind.workload ? accountAutomount(context, object, visit) : undefined
  const podContext = {
    ...context.podContext(cluster, clusterId, namespace),
    ...(automount !== undefined && { accountAutomount: automount }),
    ...(kind.workload && priorityClassFor(context, object, visit)),
  }
  const decided = placedOn(object as KubeObject)[context.member.name]
  const copy = kind.down(object, ownerCluster(context, cluster, clusterId), podContext, {
    copy: current,
    isLeaving: decided !== undefined && ['Draining', 'Terminating', 'Forwarding'].includes(decided.state),
    isScaled: kind.workload?.paths.replicas !== undefined && isScaled(context, object, visit),
    ...(decided && { decided }),
  })
  const view = context.view(cluster, namespace)
  const desired = kind.divided?.(copy, view, context.member.name) ?? copy
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  return desired
}

/** The member's PriorityClass for that of the template, unless one of the two is not known. */
function priorityClassFor(
  { member, upstream }: SyncContext,
  object: DeepReadonly<KubeObject>,
  { cluster }: Visit,
): Pick<PodContext, 'priorityClass'> {
  const name = podSpecOf(object)?.priorityClassName
  const wanted = name ? upstream.priorityClasses.store.get(keyFor({ cluster, name })) : undefined
  const classes = member.classesOf?.('PriorityClass')
  if (!name || wanted === undefined || classes === undefined) return {}
  const { value, preemptionPolicy } = wanted as Pick<MemberClass, 'value' | 'preemptionPolicy'>
  const asked = { name, ...(value !== undefined && { value }), ...(preemptionPolicy && { preemptionPolicy }) }
  return { priorityClass: priorityClassIn(classes, asked) ?? null }
}

function accountAutomount(
  context: SyncContext,
  object: DeepReadonly<KubeObject>,
  { cluster, namespace }: Visit,
): boolean | undefined {
  const name = podSpecOf(object)?.serviceAccountName ?? 'default'
  const account = upstreamObject(context, 'serviceaccounts', { cluster, namespace, name })
  return account?.['automountServiceAccountToken'] as boolean | undefined
}

function podSpecOf(workload: DeepReadonly<KubeObject>): DeepReadonly<PodSpec> | undefined {
  return (templateOf(workload) as { spec?: DeepReadonly<PodSpec> } | undefined)?.spec
}

/** Applies what must be in the namespace before its first pod. What an old member does not allow stays out. */
async function applyPreceding(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  for (const kind of syncedKinds.filter(({ precedesPods }) => precedesPods))
    for (const { metadata } of context.upstreamIn(kind.resource, visit.cluster, visit.namespace))
      await visitObject(context, kind, { ...visit, kind: kind.resource, name: metadata.name ?? '' }, signal).catch(
        tolerate('Forbidden'),
      )
}

/** Applies what the pods refer to before the workload, so that no pod starts without it. */
async function applyReferences(
  context: SyncContext,
  {
    object,
    before,
  }: { readonly object: DeepReadonly<KubeObject>; readonly before: DeepReadonly<KubeObject> | undefined },
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const spec = podSpecOf(object)
  if (spec === undefined) return
  const claims = await claimsOfOrdinals(context, { object, before }, visit, signal)
  for (const { resource, name } of [...referencesWith(context, spec, visit), ...claims]) {
    const kind = syncedKindOf(resource)
    if (kind !== undefined) await visitObject(context, kind, { ...visit, kind: resource, name }, signal)
  }
}

/** What a pod refers to, and before its ServiceAccount what that refers to. */
function referencesWith(
  context: SyncContext,
  spec: DeepReadonly<PodSpec>,
  { cluster, namespace }: Visit,
): readonly Reference[] {
  return referencesOf(spec).flatMap((reference) => {
    const { resource, name } = reference
    const account = resource === 'serviceaccounts' && upstreamObject(context, resource, { cluster, namespace, name })
    return account ? [...accountReferences(account), reference] : [reference]
  })
}

/** A copy of a deleted object that had this name. */
function isOfAnother(copy: DeepReadonly<KubeObject>, { metadata: { uid } }: DeepReadonly<KubeObject>): boolean {
  const locator = locatorOf(copy)
  return locator !== undefined && locator.uid !== uid
}

function refuseForeign(
  kind: SyncedKind,
  current: DeepReadonly<KubeObject> | undefined,
  desired: KubeObject,
  { name }: Visit,
): void {
  if (current === undefined) return
  const [is, should] = [locatorOf(current), locatorOf(desired)]
  // The member creates the ServiceAccount `default` in every namespace; it becomes our copy.
  if (is === undefined && kind.resource !== 'serviceaccounts')
    throw conflict(gvrs[kind.resource], name, 'it exists in the member and was not made by kcp')
  if ((kind.finalizes || kind.pinnedBy !== undefined) && is !== undefined && is.uid !== should?.uid)
    throw conflict(gvrs[kind.resource], name, 'the copy of a deleted object of this name is still in the member')
}

/** Writes upstream what must be there before the copy: our finalizer, and the annotation that pins a claim to this member. */
async function prepare(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  { cluster, namespace, name }: Visit,
  signal: AbortSignal,
): Promise<void> {
  const finalizer = syncerFinalizer(context.member.name)
  const { finalizers = [], annotations = {}, resourceVersion } = object.metadata
  const isPinned = kind.pinnedBy === undefined || annotations[kind.pinnedBy] !== undefined
  if ((finalizers.includes(finalizer) || !kind.finalizes) && isPinned) return
  const metadata = {
    resourceVersion,
    ...(kind.finalizes && { finalizers: [...new Set([...finalizers, finalizer])] }),
    ...(kind.pinnedBy !== undefined && { annotations: { [kind.pinnedBy]: context.member.name } }),
  }
  await context.upstream
    .client(cluster)
    .patch(gvrs[kind.resource], { namespace, name }, 'merge', { metadata }, { signal })
    .catch((error: unknown) => {
      if (!isStatusError(error, 'Conflict')) throw error
      // Our cache was behind. This is no answer of the member, which would be told to the tenant.
      throw serviceUnavailable(error.message)
    })
}

/**
 * Deletes the copy of an object that is deleted, gone, or no longer placed here. Only called with synced caches on both sides;
 * the copy must name the object, and the uid we saw is a precondition.
 */
async function removeObject(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const namespace = downstreamNamespaceOf(context, visit)
  if (namespace === undefined) return
  const current = downstreamObject(context, kind.resource, namespace, visit.name)
  const locator = locatorOf(current)
  const ours = isOurs(context, namespace) && locator?.namespace === visit.namespace && locator.name === visit.name
  if (current !== undefined && ours) {
    const isHeld = current.metadata.finalizers?.includes(upstreamFinalizer) ?? false
    if (current.metadata.deletionTimestamp !== undefined && !isHeld) return
    if (object === undefined) await context.guard.confirmGone(context, visit, locator, signal)
    else if (kind.follows !== 'decision' && object.metadata.deletionTimestamp === undefined)
      context.guard.holdFollower(context, visit)
    const isPlaced = object !== undefined && context.view(visit.cluster, visit.namespace).placedHere(object)
    const isNamespaceEnding = isEndingNamespace(context, visit)
    if (kind.workload && isPlaced && endingOf(object, { isNamespaceEnding }) === 'Held')
      return holdCopy(context, kind, current, namespace, signal)
    await deleteCopy(context, kind, current, { namespace, grace: object?.metadata.deletionGracePeriodSeconds }, signal)
    if (isHeld) await releaseCopy(context, kind, current, namespace, signal)
    return
  }
  if (kind.finalizes) await release(context, kind, object, namespace, visit, signal)
}

async function deleteCopy(
  { downstream }: SyncContext,
  kind: SyncedKind,
  current: DeepReadonly<KubeObject>,
  { namespace, grace }: { readonly namespace: string; readonly grace: Int64 | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, deletionTimestamp, finalizers } = current.metadata
  // The propagation policy of one that is held can still be changed.
  if (deletionTimestamp !== undefined && !finalizers?.includes(upstreamFinalizer)) return
  // Foreground: the workload must be gone only after its pods, because the tenant's deletion waits for it.
  await downstream
    .delete(
      gvrs[kind.resource],
      { namespace, name },
      {
        ...(uid && { uid }),
        ...(grace !== undefined && kind.resource === 'pods' && { gracePeriodSeconds: grace }),
        propagationPolicy: kind.workload ? 'Foreground' : 'Background',
        signal,
      },
    )
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Deletes the copy of a workload that finalizers of others hold upstream, and holds it by a finalizer of ours for as long. */
async function holdCopy(
  { downstream }: SyncContext,
  { resource }: SyncedKind,
  current: DeepReadonly<KubeObject>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, resourceVersion, finalizers = [], deletionTimestamp } = current.metadata
  if (deletionTimestamp !== undefined) return
  const ref = { namespace, name }
  if (!finalizers.includes(upstreamFinalizer)) {
    const metadata = { resourceVersion, finalizers: [...finalizers, upstreamFinalizer] }
    await downstream.patch(gvrs[resource], ref, 'merge', { metadata }, { signal })
  }
  await downstream
    .delete(gvrs[resource], ref, { ...(uid && { uid }), propagationPolicy: 'Background', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Removes our finalizer from a copy. */
async function releaseCopy(
  { downstream }: SyncContext,
  { resource }: SyncedKind,
  { metadata: { name = '', uid } }: DeepReadonly<KubeObject>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace, name }
  const live = await downstream.tryGet<KubeObject>(gvrs[resource], ref, { signal })
  if (live === undefined || live.metadata.uid !== uid) return
  const { resourceVersion, finalizers = [] } = live.metadata
  const metadata = { resourceVersion, finalizers: finalizers.filter((one) => one !== upstreamFinalizer) }
  await downstream.patch(gvrs[resource], ref, 'merge', { metadata }, { signal }).catch(tolerate('NotFound'))
}

/** Removes the finalizer upstream, after asking the member (not only its cache) that the copy is gone. */
async function release(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  namespace: string,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, name } = visit
  const namespaceVisit: Visit = { kind: 'namespace', cluster, namespace: visit.namespace, name: visit.namespace }
  const finalizer = syncerFinalizer(context.member.name)
  if (object?.metadata.finalizers?.includes(finalizer)) {
    const live = await context.downstream.tryGet(gvrs[kind.resource], { namespace, name }, { signal })
    if (live !== undefined && locatorOf(live)?.uid === object.metadata.uid) return
    const annotations = clearedMemberStatus(context.member.name)
    const client = context.upstream.client(cluster)
    const ref = { namespace: visit.namespace, name }
    const { resourceVersion, deletionTimestamp } = object.metadata
    // One write, so that who watches never sees the counts of a copy that is gone. An object that is deleted needs no status.
    const forgetReport = async (metadata: Readonly<Record<string, unknown>>): Promise<void> => {
      if (kind.status === undefined || deletionTimestamp !== undefined)
        await client.patch(
          gvrs[kind.resource],
          ref,
          'merge',
          { metadata: { resourceVersion, ...metadata } },
          { signal },
        )
      else {
        const patch = patchWithoutReport(context, kind.status, object, metadata)
        await client.patch(gvrs[kind.resource], ref, 'merge', patch, { subresource: 'status', signal })
      }
    }
    if (isForwarding(context, object)) {
      if (object.metadata.annotations?.[memberStatusAnnotation(context.member.name)] !== undefined)
        await forgetReport({ annotations })
      return
    }
    await deleteNamespacesOf(context, object, visit, signal)
    const finalizers = object.metadata.finalizers.filter((one) => one !== finalizer)
    await forgetReport({ finalizers, annotations })
  }
  context.enqueue(namespaceVisit)
}

/** True while the Services and Ingresses of a workload that has left the member stay there: so does our finalizer. */
function isForwarding({ member }: SyncContext, object: DeepReadonly<KubeObject>): boolean {
  const copy = placedOn(object as KubeObject)[member.name]
  return copy?.state === 'Forwarding' && object.metadata.deletionTimestamp === undefined
}
