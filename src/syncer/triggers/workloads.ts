// Changes of workloads, and of what members made of them, as reconciles.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  memberAnnotation,
  placedOn,
  placedOnAnnotation,
  templateOf,
  workloadKindOf,
  type WorkloadKind,
  type WorkloadResource,
} from '#crds/index.ts'
import { namedMembers } from '#syncer/context/named-members.ts'
import type { ContentChange } from '#syncer/context/namespace-view.ts'
import { isOrphanIn } from '#syncer/context/orphans.ts'
import { workloadOwnerOf } from '#syncer/context/owners.ts'
import { asOrdinalClaim, scaleTargetOf } from '#syncer/context/references.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { requestKindOf, type ReconcileRequest } from '#syncer/context/request.ts'
import { memberUid, ordinalsIn } from '#syncer/rules/entitlement.ts'
import { syncedKinds } from '#syncer/rules/synced-kinds.ts'
import { reportedName } from '#syncer/up/history.ts'
import { objectOf, type ObjectChange } from './change.ts'
import { contentChanged, isRelevant } from './content.ts'

/**
 * Whether a workload has, had or is to have something in this member. Few of many members are concerned; without this
 * check, each member would reconcile the workload several times until it serves.
 */
export function isConcerned(
  scope: Scope,
  resource: WorkloadResource,
  name: string,
  { before, after }: ContentChange,
): boolean {
  const { member } = scope
  if ([before, after].some((object) => object !== undefined && namedMembers(object).has(member.name))) return true
  return scope.live(resource, name) !== undefined
}

/** Whether the workload of an upstream ReplicaSet has, had or is to have something in this member. */
function ownerConcerns(
  scope: Scope,
  { kind, name }: { readonly kind: WorkloadKind; readonly name: string },
  { before, after }: ObjectChange,
): boolean {
  if ([before, after].some((object) => object !== undefined && namedMembers(object).has(scope.member.name))) return true
  const { resource } = kind.gvr
  return isConcerned(scope, resource, name, { before: undefined, after: scope.upstream(resource, name) })
}

/** Reconciles the history of an upstream ReplicaSet, and the pods in the member that may have waited for it. */
export function historyChanged(scope: Scope, change: ObjectChange): void {
  const { member } = scope
  const object = objectOf(change)
  if (object === undefined) return
  const owner = workloadOwnerOf(object)
  if (owner !== undefined && ownerConcerns(scope, owner, change)) scope.enqueue('history', owner.name)
  const [before, after] = [change.before, change.after].map((one) => one && reportedName(one, member.name))
  const reported = after ?? before
  if (reported !== undefined && (before !== after || change.before?.metadata.uid !== object.metadata.uid))
    for (const pod of podsOf(scope, { kind: 'ReplicaSet', name: reported })) scope.enqueue('pod', pod)
}

/**
 * Takes a change of an upstream object that a member may have made. Returns false for a claim without the annotation of
 * a member: the tenant made it.
 */
export function copyChanged(scope: Scope, resource: ResourceName, { before, after }: ObjectChange): boolean {
  const { context, cluster, namespace } = scope
  const { name = '', annotations } = (after ?? before)?.metadata ?? {}
  const member = annotations?.[memberAnnotation]
  if (member === undefined) return resource !== 'persistentvolumeclaims'
  if (member !== scope.member.name) return true
  const request: ReconcileRequest = { kind: resource === 'pods' ? 'pod' : `made:${resource}`, cluster, namespace, name }
  if (after === undefined && before !== undefined) context.copyDeleted(request, before)
  context.enqueue(request)
  // The pods of a Job, and the claims of a pod, wait until their owner is known as the copy of the member's.
  if (after !== undefined && (before === undefined || memberUid(before) !== memberUid(after))) {
    if (resource === 'jobs') for (const pod of podsOf(scope, { kind: 'Job', name })) scope.enqueue('pod', pod)
    if (resource === 'pods')
      for (const claim of scope.controlledBy('persistentvolumeclaims', { kind: 'Pod', name }))
        scope.enqueue('made:persistentvolumeclaims', claim.metadata.name)
  }
  if (resource === 'persistentvolumeclaims' && (before === undefined || after === undefined))
    contentChanged(scope, resource, { before, after })
  return true
}

/** An orphan has come, changed or gone: the objects that it refers to stay in the member until it is gone. */
export function orphanChanged(scope: Scope, resource: WorkloadResource, { before, after }: ObjectChange): void {
  const [was, is] = [before, after].map((object) => isOrphanIn(object, scope.member.name))
  if (!was && !is) return
  if (was !== is || changesView(before, after)) contentChanged(scope, resource, { before, after })
  const reported = before && resource === 'replicasets' ? reportedName(before, scope.member.name) : undefined
  if (!was || after !== undefined || before === undefined || reported === undefined) return
  const request: ReconcileRequest = {
    kind: 'made:replicasets',
    cluster: scope.cluster,
    namespace: scope.namespace,
    name: reported,
  }
  scope.context.copyDeleted(request, before)
  scope.context.enqueue(request)
}

/** Takes a change of a workload that concerns this member. */
export function workloadChanged(scope: Scope, resource: WorkloadResource, { before, after }: ObjectChange): void {
  const { context, cluster, namespace } = scope
  const name = (after ?? before)?.metadata.name ?? ''
  const row = workloadKindOf(resource)
  const request: ReconcileRequest = { kind: requestKindOf(resource), cluster, namespace, name }
  if (resource === 'pods' && after === undefined && before !== undefined) context.copyDeleted(request, before)
  if (changesView(before, after)) {
    contentChanged(scope, resource, { before, after })
    // When a workload begins to move, the Services of an adopted namespace begin to select pods that take requests.
    if (scope.adopted !== undefined)
      for (const { metadata } of scope.allUpstream('services')) scope.enqueue('services', metadata.name)
  }
  context.enqueue(request)
  if (row?.history) context.enqueue({ ...request, kind: 'history' })
  if (sharesOf(before) !== sharesOf(after))
    for (const { metadata } of scope.allUpstream('poddisruptionbudgets'))
      scope.enqueue('poddisruptionbudgets', metadata.name)
  const { name: member } = scope.member
  if (before !== undefined && driftIn(before, member) !== driftIn(after, member)) reconcileDependents(scope)
  if (decisionIn(before, member) !== decisionIn(after, member)) decisionChanged(scope, { kind: row?.kind ?? '', name })
}

/** The decision about a workload in this member, as text. */
function decisionIn(object: ObjectChange['after'], member: string): string {
  const copy = object && placedOn(object as KubeObject)[member]
  const { state, replicas, start, ending, shrinking, asleep } = copy ?? {}
  // Pods and claims of other ordinals are not shown.
  const ordinals = object?.kind === 'StatefulSet' ? ordinalsIn(object, member) : undefined
  return `${state} ${replicas} ${start} ${ending?.ordinal} ${shrinking?.to} ${asleep} ${ordinals?.start} ${ordinals?.end}`
}

/** What becomes of changes that are made in this member. */
function driftIn(object: ObjectChange['after'], member: string): string | undefined {
  return object && placedOn(object as KubeObject)[member]?.drift
}

/** What is written beside changes in the member depends on all workloads of the namespace. */
function reconcileDependents(scope: Scope): void {
  for (const { resource, follows } of syncedKinds) {
    if (follows === 'decision') continue
    for (const { metadata } of scope.allUpstream(resource))
      if (isRelevant(scope, resource, metadata.name ?? '')) scope.enqueueCopy(resource, metadata.name)
  }
}

function decisionChanged(scope: Scope, workload: { readonly kind: string; readonly name: string }): void {
  for (const pod of podsOf(scope, workload)) scope.enqueue('pod', pod)
  reconcileMadeOf(scope, workload)
  for (const scaler of scope.allUpstream('horizontalpodautoscalers'))
    if (scaleTargetOf(scaler) === `${workload.kind}/${workload.name}`)
      scope.enqueue('horizontalpodautoscalers', scaler.metadata.name)
}

/** Reconciles the objects that the member made before it had the workload or the ordinal: they may be shown now. */
function reconcileMadeOf(scope: Scope, owner: { readonly kind: string; readonly name: string }): void {
  for (const made of ['jobs', 'controllerrevisions'] as const)
    for (const { metadata } of scope.controlledBy(made, owner)) scope.enqueue(`made:${made}`, metadata.name)
  if (owner.kind !== 'StatefulSet') return
  for (const { metadata } of scope.allLive('persistentvolumeclaims'))
    if (asOrdinalClaim(metadata.name ?? '')?.reference.endsWith(`-${owner.name}-*`))
      scope.enqueue('made:persistentvolumeclaims', metadata.name)
}

/** The parts of a divided workload, as text; the text is the same for all workloads that are not divided. */
function sharesOf(object: ObjectChange['after']): string {
  const copies = object === undefined ? [] : Object.entries(placedOn(object as KubeObject))
  return copies
    .map(([name, { replicas }]) => (replicas === undefined ? '' : `${name}=${replicas}`))
    .join(' ')
    .trim()
}

/** Whether the view of the namespace depends on what has changed. Most changes are of the status. */
function changesView(before: ObjectChange['before'], after: ObjectChange['after']): boolean {
  const facts = (object: ObjectChange['after']): string =>
    JSON.stringify([
      object?.metadata.annotations?.[placedOnAnnotation],
      object?.metadata.finalizers,
      object?.metadata.deletionTimestamp,
      object && templateOf(object),
    ])
  return before === undefined || after === undefined || facts(before) !== facts(after)
}

/** Names of the pods in the member that belong to the object, also through ReplicaSets and Jobs. */
function* podsOf(scope: Scope, owner: { readonly kind: string; readonly name: string }): Generator<string> {
  for (const { metadata } of scope.controlledBy('pods', owner)) yield metadata.name ?? ''
  for (const { metadata } of scope.controlledBy('replicasets', owner))
    yield* podsOf(scope, { kind: 'ReplicaSet', name: metadata.name ?? '' })
  for (const { metadata } of scope.controlledBy('jobs', owner))
    yield* podsOf(scope, { kind: 'Job', name: metadata.name ?? '' })
}
