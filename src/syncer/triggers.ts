// Turns changes on both sides into visits. Nothing is decided here: a visit reads everything again.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { parseKey, type Change } from '../client/index.ts'
import {
  isWorkloadResource,
  memberAnnotation,
  parseDownstreamNamespace,
  placedOn,
  workloadKindOf,
  workloadKinds,
  type WorkloadResource,
} from '../crds/index.ts'
import type { ResourceName } from './resources/resources.ts'
import { syncedKinds } from './synced-kinds.ts'
import {
  downstreamNamespaceOf,
  locatorOf,
  upstreamNamespaceOf,
  type SyncContext,
  type VisitKind,
} from './sync-context.ts'
import type { Views } from './views.ts'
import { rootCaConfigMap } from './transform/pod-template.ts'
import { managedByLabel, serviceNameLabel } from './transform/slice-labels.ts'
import { isRemote } from './up-endpoint-slices.ts'
import { workloadOwnerOf } from './workload-owner.ts'

type ObjectChange = Change<KubeObject>
export interface TriggerContext extends SyncContext {
  readonly views: Views
  /** An upstream pod was deleted. */
  podDeleted(change: ObjectChange): void
}

const syncedResources = new Set<ResourceName>(syncedKinds.map(({ resource }) => resource))

/** Listens to changes on both sides. Returns the function that ends it. */
export function listen(context: TriggerContext): () => void {
  const ends: (() => void)[] = []
  for (const resource of Object.keys(context.caches) as ResourceName[]) {
    ends.push(context.upstream.informers[resource].onChange((change) => upstreamChanged(context, resource, change)))
    ends.push(context.caches[resource].onChange((change) => downstreamChanged(context, resource, change)))
  }
  ends.push(context.upstream.ids.onKnown((cluster) => clusterKnown(context, cluster)))
  ends.push(context.upstream.ids.onGone((id) => clusterGone(context, id)))
  return () => {
    for (const end of ends) end()
  }
}

function upstreamChanged(context: TriggerContext, resource: ResourceName, change: ObjectChange): void {
  const { cluster = '', namespace = '', name } = parseKey(change.key)
  const object = change.after ?? change.before
  const visit = (kind: VisitKind, of = name): void => context.enqueue({ kind, cluster, namespace, name: of })
  if (isWorkloadResource(resource)) {
    workloadChanged(context, resource, { cluster, namespace }, change)
    return
  }
  switch (resource) {
    case 'replicasets': {
      const workload = object === undefined ? undefined : workloadOwnerOf(object)
      if (workload !== undefined) visit('history', workload.name)
      // Pods may have waited for their owner.
      for (const pod of podsOf(context, cluster, namespace)) visit('pod', pod)
      return
    }
    case 'pods':
      if (object?.metadata.annotations?.[memberAnnotation] !== context.member.name) return
      if (change.after === undefined) context.podDeleted(change)
      visit('pod')
      return
    case 'endpointslices': {
      const member = object?.metadata.annotations?.[memberAnnotation]
      if (member === undefined) return
      visit(member === context.member.name ? 'slice' : 'remoteSlice')
      return
    }
    case 'namespaces':
      context.enqueue({ kind: 'namespace', cluster, namespace: name, name })
      return
    case 'configmaps':
      if (name === 'kube-root-ca.crt') visit('namespace', namespace)
      break
    case 'services':
      if (change.after === undefined) visit('namespace', namespace)
      for (const slice of context.upstreamIn('endpointslices', cluster, namespace)) {
        if (slice.metadata.labels?.[serviceNameLabel] === name) {
          const from = slice.metadata.annotations?.[memberAnnotation]
          visit(from === context.member.name ? 'slice' : 'remoteSlice', slice.metadata.name)
        }
      }
      break
    case 'serviceaccounts':
      break
    case 'secrets':
      break
  }
  if (isRelevant(context, resource, cluster, namespace, name)) visit(resource)
}

/** Whether the object has, or should have, a copy in this member: most ConfigMaps and Secrets do not, and cause no visit. */
function isRelevant(
  context: TriggerContext,
  resource: ResourceName,
  cluster: string,
  namespace: string,
  name: string,
): boolean {
  const view = context.view(cluster, namespace)
  if (resource === 'services' ? view.servicesWanted : view.references.has(`${resource}/${name}`)) return true
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
  const changes = context.views.refresh(cluster, namespace)
  context.enqueue({ kind: resource, cluster, namespace, name })
  if (workloadKindOf(resource)?.history) context.enqueue({ kind: 'history', cluster, namespace, name })
  for (const reference of changes.references) {
    const [resource, referenced] = reference.split('/') as [VisitKind, string]
    context.enqueue({ kind: resource, cluster, namespace, name: referenced })
  }
  for (const changed of changes.namespaces) visitServices(context, cluster, changed)
  const state = (object: ObjectChange['after']): string | undefined =>
    object && placedOn(object as KubeObject)[context.member.name]?.state
  if (state(before) !== state(after)) {
    for (const pod of podsOf(context, cluster, namespace))
      context.enqueue({ kind: 'pod', cluster, namespace, name: pod })
  }
}

function visitServices(context: TriggerContext, cluster: string, namespace: string): void {
  context.enqueue({ kind: 'namespace', cluster, namespace, name: namespace })
  for (const { metadata } of context.upstreamIn('services', cluster, namespace)) {
    context.enqueue({ kind: 'services', cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.upstreamIn('endpointslices', cluster, namespace)) {
    if (metadata.annotations?.[memberAnnotation] !== context.member.name)
      context.enqueue({ kind: 'remoteSlice', cluster, namespace, name: metadata.name ?? '' })
  }
}

function podsOf(context: SyncContext, cluster: string, namespace: string): string[] {
  const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
  return memberNamespace === undefined
    ? []
    : [...context.downstreamIn('pods', memberNamespace)].map(({ metadata }) => metadata.name ?? '')
}

function downstreamChanged(context: TriggerContext, resource: ResourceName, change: ObjectChange): void {
  const object = change.after ?? change.before
  if (object === undefined) return
  const downstream = resource === 'namespaces' ? (object.metadata.name ?? '') : (object.metadata.namespace ?? '')
  const found = upstreamNamespaceOf(context, downstream)
  if (found === undefined) {
    if (resource === 'namespaces' && change.after !== undefined) visitLeftover(context, downstream)
    return
  }
  const { cluster, namespace } = found
  const visit = (kind: VisitKind, name: string | undefined): void => {
    if (name !== undefined) context.enqueue({ kind, cluster, namespace, name })
  }
  if (isWorkloadResource(resource)) {
    visit(resource, locatorOf(object)?.name)
    if (change.after === undefined) visit('namespace', namespace)
    return
  }
  switch (resource) {
    case 'namespaces':
      visit('namespace', namespace)
      if (change.before === undefined || change.after === undefined) visitAllIn(context, cluster, namespace, downstream)
      return
    case 'replicasets':
      visit('history', workloadOwnerOf(object)?.name)
      return
    case 'pods':
      visit('pod', object.metadata.name)
      return
    case 'endpointslices':
      visit('services', object.metadata.labels?.[serviceNameLabel])
      if (isRemote(object)) visit('remoteSlice', locatorOf(object)?.name)
      else if (object.metadata.labels?.[managedByLabel] !== undefined) visit('slice', object.metadata.name)
      return
    case 'configmaps':
      if (object.metadata.name === rootCaConfigMap) visit('namespace', namespace)
      break
    case 'services':
    case 'secrets':
    case 'serviceaccounts':
      break
  }
  if (syncedResources.has(resource)) visit(resource, locatorOf(object)?.name)
}

/** A namespace that was created or deleted in the member changes what can be done with everything in it. */
function visitAllIn(context: TriggerContext, cluster: string, namespace: string, downstream: string): void {
  for (const { gvr } of workloadKinds) {
    for (const { metadata } of context.upstreamIn(gvr.resource, cluster, namespace))
      context.enqueue({ kind: gvr.resource, cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.upstreamIn('pods', cluster, namespace)) {
    if (metadata.annotations?.[memberAnnotation] === context.member.name)
      context.enqueue({ kind: 'pod', cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.downstreamIn('pods', downstream))
    context.enqueue({ kind: 'pod', cluster, namespace, name: metadata.name ?? '' })
  for (const slice of context.downstreamIn('endpointslices', downstream)) {
    context.enqueue({
      kind: isRemote(slice) ? 'remoteSlice' : 'slice',
      cluster,
      namespace,
      name: (isRemote(slice) ? locatorOf(slice)?.name : slice.metadata.name) ?? '',
    })
  }
}

/** The id of a logical cluster became known: its objects can be visited now. */
function clusterKnown(context: TriggerContext, cluster: string): void {
  for (const namespace of context.views.namespacesOf(cluster)) {
    for (const resource of syncedResources) {
      for (const { metadata } of context.upstreamIn(resource, cluster, namespace)) {
        if (isRelevant(context, resource, cluster, namespace, metadata.name ?? '') || isWorkloadResource(resource)) {
          context.enqueue({ kind: resource as VisitKind, cluster, namespace, name: metadata.name ?? '' })
        }
      }
    }
    const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
    if (memberNamespace !== undefined) visitAllIn(context, cluster, namespace, memberNamespace)
    for (const { gvr, history } of workloadKinds) {
      if (history === undefined) continue
      for (const { metadata } of context.upstreamIn(gvr.resource, cluster, namespace))
        context.enqueue({ kind: 'history', cluster, namespace, name: metadata.name ?? '' })
    }
  }
}

/** A namespace of a deleted logical cluster that was created while the last objects were deleted: nothing else leads to it. */
function visitLeftover(context: TriggerContext, downstream: string): void {
  const id = parseDownstreamNamespace(downstream)?.clusterId
  if (id !== undefined && context.upstream.ids.isGone(id))
    context.enqueue({ kind: 'leftover', cluster: id, namespace: '', name: downstream })
}

function clusterGone(context: TriggerContext, id: string): void {
  for (const { metadata } of context.downstreamIn('namespaces', '')) {
    const { name = '' } = metadata
    if (name.startsWith(`${id}-`)) visitLeftover(context, name)
  }
}
