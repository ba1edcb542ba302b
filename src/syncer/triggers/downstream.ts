// Changes in the member, as reconciles.
import { parseKey } from '#client/index.ts'
import {
  isPlaceable,
  isWorkloadResource,
  memberAnnotation,
  memberParts,
  parseDownstreamNamespace,
  systemNamespace,
  workloadKindOf,
  workloadKindOfObject,
  workloadKinds,
  type WorkloadResource,
} from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { workloadOwnerOf } from '#syncer/context/owners.ts'
import { ingressBackends, scaleTargetOf } from '#syncer/context/references.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { isRemote, podAddresses, remoteNameOf } from '#syncer/rules/slices.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'
import { managedByLabel, serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { madeKindOf, madeKinds } from '#syncer/up/made.ts'
import { objectOf, type ObjectChange } from './change.ts'

/** What a change of an object in the member triggers in its namespace. */
type Trigger = (scope: Scope, object: CachedObject, change: ObjectChange) => void

/** By resource: objects that are reconciled under a kind of their own. */
const uncopied: Readonly<Partial<Record<ResourceName, Trigger>>> = {
  namespaces: namespaceChanged,
  pods: podChanged,
  endpointslices: sliceChanged,
}

/** By resource: what a change triggers besides the reconcile of the object itself. */
const besides: Readonly<Partial<Record<ResourceName, Trigger>>> = {
  replicasets(scope, object) {
    if (locatorOf(object) === undefined) scope.enqueue('history', workloadOwnerOf(object)?.name)
  },
  configmaps(scope, { metadata }) {
    if (metadata.name === rootCaConfigMap) scope.enqueueNamespace()
  },
  ingresses(scope, object) {
    for (const service of ingressBackends(object)) scope.enqueue('services', service)
  },
  horizontalpodautoscalers: scalerChanged,
}

/** Asks for the reconciles that a change in the member causes. */
export function downstreamChanged(context: SyncContext, resource: ResourceName, change: ObjectChange): void {
  const object = objectOf(change)
  const { name, namespace = '' } = object?.metadata ?? {}
  if (object === undefined || !isName(name)) return
  const memberNamespace = resource === 'namespaces' ? name : namespace
  if (memberNamespace === systemNamespace) {
    if (resource === 'endpointslices') gatewayChanged(context, object)
    return
  }
  if (resource === 'endpointslices' && change.after === undefined) context.gateway?.release({ namespace, name })
  const scope = Scope.ofMember(context, memberNamespace)
  if (scope === undefined) {
    if (resource === 'namespaces' && change.after !== undefined) enqueueLeftover(context, memberNamespace)
    return
  }
  if (isWorkloadResource(resource)) ownerChanged(scope, resource, change)
  const other = uncopied[resource]
  if (other !== undefined) {
    other(scope, object, change)
    return
  }
  besides[resource]?.(scope, object, change)
  const isMade = locatorOf(object) === undefined
  if (isMade && madeKindOf(resource) !== undefined) scope.enqueue(`made:${resource}`, name)
  if (isMade || syncedKindOf(resource) === undefined) return
  scope.enqueue(resource, name)
  if (isWorkloadResource(resource) && change.after === undefined) scope.enqueueNamespace()
}

/** Whether the name can be a part of a key: a member may send any text. */
function isName(name: string | undefined): name is string {
  return name !== undefined && /^[\w.:-]{1,253}$/.test(name)
}

function namespaceChanged(scope: Scope, _object: CachedObject, { before, after }: ObjectChange): void {
  scope.enqueueNamespace()
  if (before === undefined || after === undefined) reconcileAllIn(scope)
}

function podChanged(scope: Scope, { metadata }: CachedObject, { before, after }: ObjectChange): void {
  scope.enqueue('pod', metadata.name)
  if (podAddresses(before).join() === podAddresses(after).join()) return
  for (const slice of scope.context.slicesWith(metadata.namespace ?? '', metadata.name ?? '')) {
    scope.enqueue('slice', slice.metadata.name)
    scope.enqueue('services', slice.metadata.labels?.[serviceNameLabel])
  }
}

function sliceChanged(scope: Scope, slice: CachedObject): void {
  const { name, labels } = slice.metadata
  scope.enqueue('services', labels?.[serviceNameLabel])
  if (isRemote(slice)) scope.enqueue('remoteSlice', remoteNameOf(slice))
  else if (labels?.[managedByLabel] !== undefined) scope.enqueue('slice', name)
}

/** Reconciles the objects that a new controller in the member made: they may have been seen before the controller. */
function ownerChanged(scope: Scope, resource: WorkloadResource, { before, after }: ObjectChange): void {
  if (after === undefined || before?.metadata.uid === after.metadata.uid) return
  const { name = '' } = after.metadata
  const row = workloadKindOf(resource)
  const owner = { kind: row?.kind ?? '', name }
  if (row?.history) scope.enqueue('history', name)
  for (const { metadata } of scope.controlledBy('pods', owner)) scope.enqueue('pod', metadata.name)
  for (const made of ['jobs', 'controllerrevisions', 'persistentvolumeclaims'] as const)
    for (const { metadata } of scope.controlledBy(made, owner)) scope.enqueue(`made:${made}`, metadata.name)
}

/** Reconciles the slices of other members: they have the addresses of the gateway in this member. */
function gatewayChanged(context: SyncContext, slice: CachedObject): void {
  if (context.gateway === undefined || slice.metadata.labels?.[serviceNameLabel] !== memberParts.gateway) return
  for (const remote of context.caches.endpointslices.store.list())
    if (isRemote(remote))
      Scope.ofMember(context, remote.metadata.namespace ?? '')?.enqueue('remoteSlice', remoteNameOf(remote))
}

/** Reconciles the target of an autoscaler: an autoscaler decides whether the syncer sets the replicas of its target. */
function scalerChanged(scope: Scope, autoscaler: CachedObject): void {
  const [kind = '', name = ''] = scaleTargetOf(autoscaler).split('/')
  const resource = workloadKindOfObject({ kind })?.gvr.resource
  if (resource !== undefined) scope.enqueue(resource, name)
}

/** Asks for the reconcile of an Event of the member. */
export function eventChanged(context: SyncContext, { key, after }: ObjectChange): void {
  const { namespace = '', name } = parseKey(key)
  if (after !== undefined && isName(name)) Scope.ofMember(context, namespace)?.enqueue('event', name)
}

/** A namespace that was created or deleted in the member changes what can be done with everything in it. */
export function reconcileAllIn(scope: Scope): void {
  const { name: member } = scope.member
  for (const { gvr } of workloadKinds)
    for (const workload of scope.allUpstream(gvr.resource)) {
      const { name, annotations } = workload.metadata
      const isMadeHere = gvr.resource === 'pods' && annotations?.[memberAnnotation] === member
      if (isMadeHere || isPlaceable(workload)) scope.enqueueCopy(gvr.resource, name)
    }
  for (const { resource } of madeKinds) {
    for (const { metadata } of scope.allLive(resource)) scope.enqueue(`made:${resource}`, metadata.name)
    for (const { metadata } of scope.allUpstream(resource))
      if (metadata.annotations?.[memberAnnotation] === member) scope.enqueue(`made:${resource}`, metadata.name)
  }
  for (const { metadata } of scope.allLive('pods')) scope.enqueue('pod', metadata.name)
  for (const slice of scope.allLive('endpointslices'))
    if (isRemote(slice)) scope.enqueue('remoteSlice', remoteNameOf(slice))
    else scope.enqueue('slice', slice.metadata.name)
}

/**
 * A namespace of a deleted logical cluster that was created while the last objects were deleted: nothing else leads to
 * it.
 */
export function enqueueLeftover(context: SyncContext, memberNamespace: string): void {
  const id = parseDownstreamNamespace(memberNamespace)?.clusterId
  if (id !== undefined && context.upstream.ids.isGone(id))
    context.enqueue({ kind: 'leftover', cluster: id, namespace: '', name: memberNamespace })
}
