// Changes in logical clusters, as visits.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseKey, type DeepReadonly } from '#client/index.ts'
import {
  exportedNameOf,
  isPlaceable,
  isWorkloadResource,
  memberAnnotation,
  memberUidAnnotation,
  placedOn,
  placedOnAnnotation,
  templateOf,
  workloadKindOf,
  workloadKinds,
  type WorkloadKind,
  type WorkloadResource,
} from '#crds/index.ts'
import { ordinalsIn } from '#syncer/rules/entitlement.ts'
import { namedMembers } from '#syncer/context/named-members.ts'
import { isClaimIn, type ContentChange } from '#syncer/context/namespace-view.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import {
  downstreamNamespaceOf,
  downstreamObject,
  upstreamObject,
  visitKindOf,
  type SyncContext,
  type Visit,
  type VisitKind,
} from '#syncer/context/sync-context.ts'
import { syncedKindOf, syncedKinds } from '#syncer/rules/synced-kinds.ts'
import { asOrdinalClaim, scaleTargetOf } from '#syncer/context/references.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import type { ObjectChange, TriggerContext } from '#syncer/context/trigger-context.ts'
import { isLost, isRemote } from '#syncer/down/endpoint-slices.ts'
import { reportedName } from '#syncer/up/history.ts'
import { madeKindOf } from '#syncer/up/made.ts'
import { podOnNodeChanged } from '#syncer/up/nodes.ts'
import type { ContentResource } from '#syncer/context/views.ts'
import { workloadOwnerOf } from './workload-owner.ts'

/** Asks for the visits that a change in a logical cluster causes in this member. */
export function upstreamChanged(context: TriggerContext, resource: ResourceName, change: ObjectChange): void {
  const { cluster = '', namespace = '', name } = parseKey(change.key)
  const object = change.after ?? change.before
  if (object === undefined) return
  if (change.isUnlisted && isWorkloadResource(resource)) context.guard.vanished()
  const visit = (kind: VisitKind, of = name): void => context.enqueue({ kind, cluster, namespace, name: of })
  if (resource === 'pods') shownPodChanged(context, { cluster, namespace }, change)
  if (isWorkloadResource(resource) && isPlaceable(object)) {
    if (isConcerned(context, resource, { cluster, namespace, name }, change))
      workloadChanged(context, resource, { cluster, namespace }, change)
    return
  }
  if (resource === 'pods' || madeKindOf(resource) !== undefined) {
    if (copyChanged(context, resource, { cluster, namespace, name }, change)) return
  }
  switch (resource) {
    case 'replicasets': {
      const owner = workloadOwnerOf(object)
      if (owner !== undefined && ownerConcerns(context, owner, { cluster, namespace }, change))
        visit('history', owner.name)
      // Pods may have waited for their owner.
      const [before, after] = [change.before, change.after].map((one) => one && reportedName(one, context.member.name))
      const reported = after ?? before
      if (reported !== undefined && (before !== after || change.before?.metadata.uid !== object.metadata.uid))
        for (const pod of podsOf(context, { cluster, namespace }, { kind: 'ReplicaSet', name: reported }))
          visit('pod', pod)
      return
    }
    case 'endpointslices': {
      const member = object.metadata.annotations?.[memberAnnotation]
      if (member === undefined) return
      visit(member === context.member.name ? 'slice' : 'remoteSlice')
      // Those of a lost member may have waited for this one.
      if (context.member.serviceNetwork !== 'None')
        for (const { metadata } of lostSlicesOf(context, { cluster, namespace }, object))
          visit('remoteSlice', metadata.name)
      return
    }
    case 'namespaces':
      if (change.after === undefined) context.views.forget(cluster, name)
      if (isEnding(change.after) && !isEnding(change.before)) visitWorkloads(context, cluster, name)
      context.enqueue({ kind: 'namespace', cluster, namespace: name, name })
      return
    case 'configmaps':
      if (name === 'kube-root-ca.crt') visit('namespace', namespace)
      break
    case 'services':
      if (change.after === undefined) visit('namespace', namespace)
      for (const slice of context.upstreamIn('endpointslices', cluster, namespace)) {
        const of = slice.metadata.labels?.[serviceNameLabel]
        // The second Service of an exported one decides about the names of pods in it.
        if (of === name || (of !== undefined && of === exportedNameOf(object))) {
          const from = slice.metadata.annotations?.[memberAnnotation]
          visit(from === context.member.name ? 'slice' : 'remoteSlice', slice.metadata.name)
        }
      }
      // Slices of the member that were seen before their Service, or while a list lacked it, have no copy yet; nor have those of pods
      // that the Service did not select.
      if (selectorOf(change.before) !== selectorOf(change.after))
        for (const { metadata } of slicesInMember(context, { cluster, namespace }, name)) visit('slice', metadata.name)
      break
    case 'ingresses':
    case 'serviceaccounts':
    case 'persistentvolumeclaims':
      contentChanged(context, resource, { cluster, namespace }, change)
      break
    default:
      break
  }
  const kind = syncedKindOf(resource)
  if (kind?.follows !== 'decision' && isRelevant(context, resource, cluster, namespace, name)) visit(resource)
}

function isEnding(object: ObjectChange['after']): boolean {
  return object?.metadata.deletionTimestamp !== undefined
}

/** The workloads of a namespace that is being deleted: their copies go at once. */
function visitWorkloads(context: TriggerContext, cluster: string, namespace: string): void {
  for (const { gvr } of workloadKinds)
    for (const { metadata } of context.upstreamIn(gvr.resource, cluster, namespace))
      context.enqueue({ kind: visitKindOf(gvr.resource), cluster, namespace, name: metadata.name ?? '' })
}

interface Where {
  readonly cluster: string
  readonly namespace: string
}

/**
 * Whether a workload has, had or is to have something in this member. Of many members few are concerned, and each of them would look
 * at the workload several times until it serves.
 */
function isConcerned(
  context: TriggerContext,
  resource: WorkloadResource,
  where: Where & { readonly name: string },
  { before, after }: Pick<ObjectChange, 'before' | 'after'>,
): boolean {
  const { name: member } = context.member
  if ([before, after].some((object) => object !== undefined && namedMembers(object).has(member))) return true
  const memberNamespace = downstreamNamespaceOf(context, where)
  return memberNamespace !== undefined && downstreamObject(context, resource, memberNamespace, where.name) !== undefined
}

/** The same for the workload that a ReplicaSet upstream belongs to. */
function ownerConcerns(
  context: TriggerContext,
  { kind, name }: { readonly kind: WorkloadKind; readonly name: string },
  where: Where,
  { before, after }: ObjectChange,
): boolean {
  if ([before, after].some((object) => object !== undefined && namedMembers(object).has(context.member.name)))
    return true
  const { resource } = kind.gvr
  const workload = upstreamObject(context, resource, { ...where, name })
  return isConcerned(context, resource, { ...where, name }, { before: undefined, after: workload })
}

/** A pod of this member is shown now, or otherwise: with it its endpoints and its node may be. */
function shownPodChanged(context: TriggerContext, { cluster, namespace }: Where, change: ObjectChange): void {
  const facts = (pod: ObjectChange['after']): string => {
    const { uid, labels, annotations = {} } = pod?.metadata ?? {}
    const { hostname } = (pod?.['spec'] ?? {}) as { hostname?: string }
    return annotations[memberAnnotation] === context.member.name
      ? JSON.stringify([annotations[memberUidAnnotation] ?? uid, labels, hostname])
      : ''
  }
  podOnNodeChanged(context, cluster, change)
  const { before, after } = change
  if (facts(before) === facts(after)) return
  const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
  if (memberNamespace === undefined) return
  for (const { metadata } of context.slicesWith(memberNamespace, (after ?? before)?.metadata.name ?? '')) {
    context.enqueue({ kind: 'slice', cluster, namespace, name: metadata.name ?? '' })
    context.enqueue({ kind: 'services', cluster, namespace, name: metadata.labels?.[serviceNameLabel] ?? '' })
  }
}

function selectorOf(service: ObjectChange['after']): string | undefined {
  return service && JSON.stringify((service['spec'] as { selector?: object } | undefined)?.selector ?? {})
}

/** The slices that the member made for a Service. */
function slicesInMember(
  context: TriggerContext,
  within: { readonly cluster: string; readonly namespace: string },
  service: string,
): DeepReadonly<KubeObject>[] {
  const memberNamespace = downstreamNamespaceOf(context, within)
  if (memberNamespace === undefined) return []
  return [...context.downstreamIn('endpointslices', memberNamespace)].filter(
    (slice) => slice.metadata.labels?.[serviceNameLabel] === service && !isRemote(slice),
  )
}

/** A copy of what a member made has changed upstream. Returns whether it is one of this or another member. */
function copyChanged(
  context: TriggerContext,
  resource: ResourceName,
  { cluster, namespace, name }: { readonly cluster: string; readonly namespace: string; readonly name: string },
  { before, after }: ObjectChange,
): boolean {
  const object = after ?? before
  const member = object?.metadata.annotations?.[memberAnnotation]
  if (member === undefined) return resource !== 'persistentvolumeclaims'
  if (member !== context.member.name) return true
  const visit: Visit = { kind: resource === 'pods' ? 'pod' : `made:${resource}`, cluster, namespace, name }
  if (after === undefined && before !== undefined) context.copyDeleted(visit, before)
  context.enqueue(visit)
  // Its pods may have waited for their owner.
  if (resource === 'jobs' && before === undefined)
    for (const pod of podsOf(context, { cluster, namespace }, { kind: 'Job', name }))
      context.enqueue({ ...visit, kind: 'pod', name: pod })
  if (resource === 'persistentvolumeclaims' && (before === undefined || after === undefined))
    contentChanged(context, resource, { cluster, namespace }, { before, after })
  return true
}

/** Whether the object has, or should have, a copy in this member: most ConfigMaps and Secrets do not, and cause no visit. */
export function isRelevant(
  context: TriggerContext,
  resource: ResourceName,
  cluster: string,
  namespace: string,
  name: string,
): boolean {
  const view = context.view(cluster, namespace)
  const follows = syncedKindOf(resource)?.follows
  if (follows === 'namespace' && (resource === 'services' ? view.servicesWanted : view.present)) return true
  if (follows === 'references' && view.refersTo(`${resource}/${name}`)) return true
  if (resource === 'persistentvolumeclaims') {
    const claim = upstreamObject(context, resource, { cluster, namespace, name })
    if (claim !== undefined && isClaimIn(claim, context.member.name)) return true
  }
  const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
  return memberNamespace !== undefined && context.caches[resource].store.get(`${memberNamespace}/${name}`) !== undefined
}

function workloadChanged(
  context: TriggerContext,
  resource: WorkloadResource,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  { before, after }: ObjectChange,
): void {
  const name = (after ?? before)?.metadata.name ?? ''
  const row = workloadKindOf(resource)
  const visit: Visit = { kind: visitKindOf(resource), cluster, namespace, name }
  if (resource === 'pods' && after === undefined && before !== undefined) context.copyDeleted(visit, before)
  if (changesView(before, after)) contentChanged(context, resource, { cluster, namespace }, { before, after })
  context.enqueue(visit)
  if (row?.history) context.enqueue({ ...visit, kind: 'history' })
  const decided = (object: ObjectChange['after']): string => {
    const copy = object && placedOn(object as KubeObject)[context.member.name]
    const { state, replicas, start, ending, shrinking } = copy ?? {}
    // Pods and claims of other ordinals are not shown.
    const ordinals = resource === 'statefulsets' && object ? ordinalsIn(object, context.member.name) : undefined
    return `${state} ${replicas} ${start} ${ending?.ordinal} ${shrinking?.to} ${ordinals?.start} ${ordinals?.end}`
  }
  if (sharesOf(before) !== sharesOf(after))
    for (const { metadata } of context.upstreamIn('poddisruptionbudgets', cluster, namespace))
      context.enqueue({ kind: 'poddisruptionbudgets', cluster, namespace, name: metadata.name ?? '' })
  if (decided(before) === decided(after)) return
  const kind = row?.kind ?? ''
  for (const pod of podsOf(context, { cluster, namespace }, { kind, name }))
    context.enqueue({ kind: 'pod', cluster, namespace, name: pod })
  visitMadeOf(context, { cluster, namespace }, { kind, name })
  for (const scaler of context.upstreamIn('horizontalpodautoscalers', cluster, namespace))
    if (scaleTargetOf(scaler) === `${kind}/${name}`)
      context.enqueue({ kind: 'horizontalpodautoscalers', cluster, namespace, name: scaler.metadata.name ?? '' })
}

/** What the member made of a workload before the member had it, or the ordinal, is shown now. */
function visitMadeOf(
  context: TriggerContext,
  where: Where,
  owner: { readonly kind: string; readonly name: string },
): void {
  const memberNamespace = downstreamNamespaceOf(context, where)
  if (memberNamespace === undefined) return
  for (const made of ['jobs', 'controllerrevisions'] as const)
    for (const { metadata } of context.controlledBy(made, memberNamespace, owner))
      context.enqueue({ kind: `made:${made}`, ...where, name: metadata.name ?? '' })
  if (owner.kind !== 'StatefulSet') return
  for (const { metadata } of context.downstreamIn('persistentvolumeclaims', memberNamespace))
    if (asOrdinalClaim(metadata.name ?? '')?.reference.endsWith(`-${owner.name}-*`))
      context.enqueue({ kind: 'made:persistentvolumeclaims', ...where, name: metadata.name ?? '' })
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

/** Visits what the change of an object brings into the member or out of it. */
function contentChanged(
  context: TriggerContext,
  resource: ContentResource,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  change: ContentChange,
): void {
  const changes = context.views.change(cluster, namespace, resource, change)
  let hasOrdinalClaims = false
  for (const reference of changes.references) {
    const [resource, name] = reference.split('/') as [ResourceName, string]
    if (name.endsWith('*')) hasOrdinalClaims = true
    else context.enqueue({ kind: resource, cluster, namespace, name })
  }
  if (hasOrdinalClaims)
    for (const { metadata } of context.upstreamIn('persistentvolumeclaims', cluster, namespace))
      if (asOrdinalClaim(metadata.name ?? '') !== undefined && metadata.annotations?.[memberAnnotation] === undefined)
        context.enqueue({ kind: 'persistentvolumeclaims', cluster, namespace, name: metadata.name ?? '' })
  for (const changed of changes.namespaces) visitFollowers(context, cluster, changed)
}

/** Everything that is in a member because its namespace is. */
function visitFollowers(context: TriggerContext, cluster: string, namespace: string): void {
  context.enqueue({ kind: 'namespace', cluster, namespace, name: namespace })
  for (const { resource, follows } of syncedKinds) {
    if (follows !== 'namespace') continue
    for (const { metadata } of context.upstreamIn(resource, cluster, namespace))
      context.enqueue({ kind: resource, cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.upstreamIn('endpointslices', cluster, namespace)) {
    if (metadata.annotations?.[memberAnnotation] !== context.member.name)
      context.enqueue({ kind: 'remoteSlice', cluster, namespace, name: metadata.name ?? '' })
  }
}

function lostSlicesOf(
  context: SyncContext,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  { metadata }: DeepReadonly<KubeObject>,
): DeepReadonly<KubeObject>[] {
  const service = metadata.labels?.[serviceNameLabel]
  return [...context.upstreamIn('endpointslices', cluster, namespace)].filter(
    (slice) => isLost(slice) && slice.metadata.labels?.[serviceNameLabel] === service,
  )
}

/** Names of the pods in the member that belong to the object, also through ReplicaSets and Jobs. */
function* podsOf(
  context: SyncContext,
  within: { readonly cluster: string; readonly namespace: string },
  owner: { readonly kind: string; readonly name: string },
): Generator<string> {
  const memberNamespace = downstreamNamespaceOf(context, within)
  if (memberNamespace === undefined) return
  for (const { metadata } of context.controlledBy('pods', memberNamespace, owner)) yield metadata.name ?? ''
  for (const { metadata } of context.controlledBy('replicasets', memberNamespace, owner))
    yield* podsOf(context, within, { kind: 'ReplicaSet', name: metadata.name ?? '' })
  for (const { metadata } of context.controlledBy('jobs', memberNamespace, owner))
    yield* podsOf(context, within, { kind: 'Job', name: metadata.name ?? '' })
}
