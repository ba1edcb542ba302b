// Changes in the member, as visits.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseKey, type DeepReadonly } from '#client/index.ts'
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
import { ingressBackends, scaleTargetOf } from '#syncer/context/references.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import { locatorOf, upstreamNamespaceOf, visitKindOf, type VisitKind } from '#syncer/context/sync-context.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'
import { managedByLabel, serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import type { ObjectChange, TriggerContext } from '#syncer/context/trigger-context.ts'
import { isRemote, podAddresses, remoteNameOf } from '#syncer/down/endpoint-slices.ts'
import { madeKindOf, madeKinds } from '#syncer/up/made.ts'
import { workloadOwnerOf } from './workload-owner.ts'

/** Asks for the visits that a change in the member causes. */
export function downstreamChanged(context: TriggerContext, resource: ResourceName, change: ObjectChange): void {
  const object = change.after ?? change.before
  if (object === undefined || !isName(object.metadata.name)) return
  const downstream = resource === 'namespaces' ? (object.metadata.name ?? '') : (object.metadata.namespace ?? '')
  if (downstream === systemNamespace) {
    if (resource === 'endpointslices') gatewayChanged(context, object)
    return
  }
  if (resource === 'endpointslices' && change.after === undefined)
    context.gateway?.release({ namespace: downstream, name: object.metadata.name ?? '' })
  const found = upstreamNamespaceOf(context, downstream)
  if (found === undefined) {
    if (resource === 'namespaces' && change.after !== undefined) visitLeftover(context, downstream)
    return
  }
  const { cluster, namespace } = found
  const visit = (kind: VisitKind, name: string | undefined): void => {
    if (name !== undefined) context.enqueue({ kind, cluster, namespace, name })
  }
  const locator = locatorOf(object)
  if (isWorkloadResource(resource)) ownerChanged(context, { cluster, namespace }, resource, change)
  switch (resource) {
    case 'namespaces':
      visit('namespace', namespace)
      if (change.before === undefined || change.after === undefined) visitAllIn(context, cluster, namespace, downstream)
      return
    case 'pods':
      visit('pod', object.metadata.name)
      if (podAddresses(change.before).join() !== podAddresses(change.after).join())
        for (const { metadata } of context.slicesWith(downstream, object.metadata.name ?? '')) {
          visit('slice', metadata.name)
          visit('services', metadata.labels?.[serviceNameLabel])
        }
      return
    case 'endpointslices':
      visit('services', object.metadata.labels?.[serviceNameLabel])
      if (isRemote(object)) visit('remoteSlice', remoteNameOf(object))
      else if (object.metadata.labels?.[managedByLabel] !== undefined) visit('slice', object.metadata.name)
      return
    case 'replicasets':
      if (locator === undefined) visit('history', workloadOwnerOf(object)?.name)
      break
    case 'configmaps':
      if (object.metadata.name === rootCaConfigMap) visit('namespace', namespace)
      break
    case 'ingresses':
      for (const service of ingressBackends(object)) visit('services', service)
      break
    case 'horizontalpodautoscalers':
      scalerChanged(context, { cluster, namespace }, object)
      break
    default:
      break
  }
  if (locator === undefined && madeKindOf(resource) !== undefined) visit(`made:${resource}`, object.metadata.name)
  if (locator === undefined || syncedKindOf(resource) === undefined) return
  visit(resource, object.metadata.name)
  if (isWorkloadResource(resource) && change.after === undefined) visit('namespace', namespace)
}

/** Whether it can be a part of a key: a member may answer with any text. */
function isName(name: string | undefined): boolean {
  return name !== undefined && /^[\w.:-]{1,253}$/.test(name)
}

/** What a controller in the member makes may have been seen before the controller. */
function ownerChanged(
  context: TriggerContext,
  where: { readonly cluster: string; readonly namespace: string },
  resource: WorkloadResource,
  { before, after }: ObjectChange,
): void {
  if (after === undefined || before?.metadata.uid === after.metadata.uid) return
  const { namespace = '', name = '' } = after.metadata
  const row = workloadKindOf(resource)
  const owner = { kind: row?.kind ?? '', name }
  if (row?.history) context.enqueue({ kind: 'history', ...where, name })
  for (const { metadata } of context.controlledBy('pods', namespace, owner))
    context.enqueue({ kind: 'pod', ...where, name: metadata.name ?? '' })
  for (const made of ['jobs', 'controllerrevisions'] as const)
    for (const { metadata } of context.controlledBy(made, namespace, owner))
      context.enqueue({ kind: `made:${made}`, ...where, name: metadata.name ?? '' })
}

/** The slices of other members have the addresses of the gateway here. */
function gatewayChanged(context: TriggerContext, slice: DeepReadonly<KubeObject>): void {
  if (context.gateway === undefined || slice.metadata.labels?.[serviceNameLabel] !== memberParts.gateway) return
  for (const remote of context.caches.endpointslices.store.list()) {
    const found = isRemote(remote) ? upstreamNamespaceOf(context, remote.metadata.namespace ?? '') : undefined
    if (found !== undefined) context.enqueue({ kind: 'remoteSlice', ...found, name: remoteNameOf(remote) })
  }
}

/** What an autoscaler says decides who sets the replicas of its target. */
function scalerChanged(
  context: TriggerContext,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  autoscaler: DeepReadonly<KubeObject>,
): void {
  const [kind = '', name = ''] = scaleTargetOf(autoscaler).split('/')
  const resource = workloadKindOfObject({ kind })?.gvr.resource
  if (resource !== undefined) context.enqueue({ kind: resource, cluster, namespace, name })
}

/** Asks for the visit of an Event of the member. */
export function eventChanged(context: TriggerContext, { key, after }: ObjectChange): void {
  const { namespace: downstream = '', name } = parseKey(key)
  const found = after === undefined || !isName(name) ? undefined : upstreamNamespaceOf(context, downstream)
  if (found !== undefined) context.enqueue({ kind: 'event', cluster: found.cluster, namespace: found.namespace, name })
}

/** A namespace that was created or deleted in the member changes what can be done with everything in it. */
export function visitAllIn(context: TriggerContext, cluster: string, namespace: string, downstream: string): void {
  for (const { gvr } of workloadKinds) {
    for (const workload of context.upstreamIn(gvr.resource, cluster, namespace)) {
      const { name = '', annotations } = workload.metadata
      const isMadeHere = gvr.resource === 'pods' && annotations?.[memberAnnotation] === context.member.name
      if (isMadeHere || isPlaceable(workload))
        context.enqueue({ kind: visitKindOf(gvr.resource), cluster, namespace, name })
    }
  }
  for (const { resource } of madeKinds) {
    for (const { metadata } of context.downstreamIn(resource, downstream))
      context.enqueue({ kind: `made:${resource}`, cluster, namespace, name: metadata.name ?? '' })
    for (const { metadata } of context.upstreamIn(resource, cluster, namespace))
      if (metadata.annotations?.[memberAnnotation] === context.member.name)
        context.enqueue({ kind: `made:${resource}`, cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.downstreamIn('pods', downstream))
    context.enqueue({ kind: 'pod', cluster, namespace, name: metadata.name ?? '' })
  for (const slice of context.downstreamIn('endpointslices', downstream)) {
    context.enqueue({
      kind: isRemote(slice) ? 'remoteSlice' : 'slice',
      cluster,
      namespace,
      name: isRemote(slice) ? remoteNameOf(slice) : (slice.metadata.name ?? ''),
    })
  }
}

/** A namespace of a deleted logical cluster that was created while the last objects were deleted: nothing else leads to it. */
export function visitLeftover(context: TriggerContext, downstream: string): void {
  const id = parseDownstreamNamespace(downstream)?.clusterId
  if (id !== undefined && context.upstream.ids.isGone(id))
    context.enqueue({ kind: 'leftover', cluster: id, namespace: '', name: downstream })
}
