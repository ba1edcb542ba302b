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
import { ordinalsIn } from '#syncer/rules/entitlement.ts'
import { reportedName } from '#syncer/up/history.ts'
import { objectOf, type ObjectChange } from './change.ts'
import { contentChanged } from './content.ts'

/**
 * Whether a workload has, had or is to have something in this member. Of many members few are concerned, and each of
 * them would look at the workload several times until it serves.
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

/** The same for the workload that a ReplicaSet upstream belongs to. */
function ownerConcerns(
  scope: Scope,
  { kind, name }: { readonly kind: WorkloadKind; readonly name: string },
  { before, after }: ObjectChange,
): boolean {
  if ([before, after].some((object) => object !== undefined && namedMembers(object).has(scope.member.name))) return true
  const { resource } = kind.gvr
  return isConcerned(scope, resource, name, { before: undefined, after: scope.upstream(resource, name) })
}

/** The history of a workload upstream: its owner counts it, and pods may have waited for it. */
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

/** A copy of what a member made has changed upstream. Returns whether it is one of this or another member. */
export function copyChanged(scope: Scope, resource: ResourceName, { before, after }: ObjectChange): boolean {
  const { context, cluster, namespace } = scope
  const { name = '', annotations } = (after ?? before)?.metadata ?? {}
  const member = annotations?.[memberAnnotation]
  if (member === undefined) return resource !== 'persistentvolumeclaims'
  if (member !== scope.member.name) return true
  const request: ReconcileRequest = { kind: resource === 'pods' ? 'pod' : `made:${resource}`, cluster, namespace, name }
  if (after === undefined && before !== undefined) context.copyDeleted(request, before)
  context.enqueue(request)
  // Its pods may have waited for their owner.
  if (resource === 'jobs' && before === undefined)
    for (const pod of podsOf(scope, { kind: 'Job', name })) scope.enqueue('pod', pod)
  if (resource === 'persistentvolumeclaims' && (before === undefined || after === undefined))
    contentChanged(scope, resource, { before, after })
  return true
}

/** What a member made of a workload that was deleted without it keeps what it uses in the member, until it goes. */
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

/** A workload that concerns this member. */
export function workloadChanged(scope: Scope, resource: WorkloadResource, { before, after }: ObjectChange): void {
  const { context, cluster, namespace } = scope
  const name = (after ?? before)?.metadata.name ?? ''
  const row = workloadKindOf(resource)
  const request: ReconcileRequest = { kind: requestKindOf(resource), cluster, namespace, name }
  if (resource === 'pods' && after === undefined && before !== undefined) context.copyDeleted(request, before)
  if (changesView(before, after)) contentChanged(scope, resource, { before, after })
  context.enqueue(request)
  if (row?.history) context.enqueue({ ...request, kind: 'history' })
  if (sharesOf(before) !== sharesOf(after))
    for (const { metadata } of scope.allUpstream('poddisruptionbudgets'))
      scope.enqueue('poddisruptionbudgets', metadata.name)
  const { name: member } = scope.member
  if (decisionIn(before, member) !== decisionIn(after, member)) decisionChanged(scope, { kind: row?.kind ?? '', name })
}

/** The decision about a workload in this member, as text. */
function decisionIn(object: ObjectChange['after'], member: string): string {
  const copy = object && placedOn(object as KubeObject)[member]
  const { state, replicas, start, ending, shrinking } = copy ?? {}
  // Pods and claims of other ordinals are not shown.
  const ordinals = object?.kind === 'StatefulSet' ? ordinalsIn(object, member) : undefined
  return `${state} ${replicas} ${start} ${ending?.ordinal} ${shrinking?.to} ${ordinals?.start} ${ordinals?.end}`
}

function decisionChanged(scope: Scope, workload: { readonly kind: string; readonly name: string }): void {
  for (const pod of podsOf(scope, workload)) scope.enqueue('pod', pod)
  reconcileMadeOf(scope, workload)
  for (const scaler of scope.allUpstream('horizontalpodautoscalers'))
    if (scaleTargetOf(scaler) === `${workload.kind}/${workload.name}`)
      scope.enqueue('horizontalpodautoscalers', scaler.metadata.name)
}

/** What the member made of a workload before the member had it, or the ordinal, is shown now. */
function reconcileMadeOf(scope: Scope, owner: { readonly kind: string; readonly name: string }): void {
  for (const made of ['jobs', 'controllerrevisions'] as const)
    for (const { metadata } of scope.controlledBy(made, owner)) scope.enqueue(`made:${made}`, metadata.name)
  if (owner.kind !== 'StatefulSet') return
  for (const { metadata } of scope.allLive('persistentvolumeclaims'))
    if (asOrdinalClaim(metadata.name ?? '')?.reference.endsWith(`-${owner.name}-*`))
      scope.enqueue('made:persistentvolumeclaims', metadata.name)
}

/** The parts of a divided workload, as text; the same for all that are not divided. */
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
