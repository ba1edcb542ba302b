// What changed, translated into what has to be visited. Nothing is decided here: a visit looks at everything again.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { parseKey, type Change } from '../client/index.ts'
import { memberAnnotation, placedOn } from '../crds/index.ts'
import { syncedKinds, type ResourceName } from './synced-kinds.ts'
import { downstreamSpace, locatorOf, upstreamSpace, type SyncContext, type VisitKind } from './sync-context.ts'
import type { Views } from './views.ts'
import { isRemote, managedByLabel, serviceNameLabel } from './up-endpoint-slices.ts'
import { ownerName } from './up-history.ts'

type ObjectChange = Change<KubeObject>
export interface TriggerContext extends SyncContext {
  readonly views: Views
  /** An upstream pod went by somebody's deletion. */
  podDeleted(change: ObjectChange): void
}

const syncedResources = new Set<ResourceName>(syncedKinds.map(({ resource }) => resource))

/** Listens to both sides. Returns how to end it. */
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
  switch (resource) {
    case 'deployments':
      deploymentChanged(context, cluster, namespace, change)
      return
    case 'replicasets': {
      const deployment = object === undefined ? undefined : ownerName(object, 'Deployment')
      if (deployment !== undefined) visit('history', deployment)
      // A pod may have waited for its owner.
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
      visit(member === context.member.name ? 'slice' : 'remote')
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
          visit(from === context.member.name ? 'slice' : 'remote', slice.metadata.name)
        }
      }
      break
    case 'serviceaccounts':
      break
    case 'secrets':
      break
  }
  if (isConcerned(context, resource, cluster, namespace, name)) visit(resource)
}

/** Most ConfigMaps and Secrets have nothing to do with this member: they cost it nothing. */
function isConcerned(
  context: TriggerContext,
  resource: ResourceName,
  cluster: string,
  namespace: string,
  name: string,
): boolean {
  const view = context.view(cluster, namespace)
  if (resource === 'services' ? view.servicesWanted : view.references.has(`${resource}/${name}`)) return true
  const space = downstreamSpace(context, { cluster, namespace })
  return space !== undefined && context.caches[resource].store.get(`${space}/${name}`) !== undefined
}

function deploymentChanged(
  context: TriggerContext,
  cluster: string,
  namespace: string,
  { before, after }: ObjectChange,
): void {
  const name = (after ?? before)?.metadata.name ?? ''
  const changes = context.views.refresh(cluster, namespace)
  context.enqueue({ kind: 'deployments', cluster, namespace, name })
  context.enqueue({ kind: 'history', cluster, namespace, name })
  for (const reference of changes.references) {
    const [resource, referenced] = reference.split('/') as [VisitKind, string]
    context.enqueue({ kind: resource, cluster, namespace, name: referenced })
  }
  for (const space of changes.spaces) visitServices(context, cluster, space)
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
      context.enqueue({ kind: 'remote', cluster, namespace, name: metadata.name ?? '' })
  }
}

function podsOf(context: SyncContext, cluster: string, namespace: string): string[] {
  const space = downstreamSpace(context, { cluster, namespace })
  return space === undefined ? [] : [...context.downstreamIn('pods', space)].map(({ metadata }) => metadata.name ?? '')
}

function downstreamChanged(context: TriggerContext, resource: ResourceName, change: ObjectChange): void {
  const object = change.after ?? change.before
  if (object === undefined) return
  const downstream = resource === 'namespaces' ? (object.metadata.name ?? '') : (object.metadata.namespace ?? '')
  const space = upstreamSpace(context, downstream)
  if (space === undefined) {
    if (resource === 'namespaces' && change.after !== undefined) visitLeftover(context, downstream)
    return
  }
  const { cluster, namespace } = space
  const visit = (kind: VisitKind, name: string | undefined): void => {
    if (name !== undefined) context.enqueue({ kind, cluster, namespace, name })
  }
  switch (resource) {
    case 'namespaces':
      visit('namespace', namespace)
      if (change.before === undefined || change.after === undefined) revisit(context, cluster, namespace, downstream)
      return
    case 'replicasets':
      visit('history', ownerName(object, 'Deployment'))
      return
    case 'pods':
      visit('pod', object.metadata.name)
      return
    case 'endpointslices':
      visit('services', object.metadata.labels?.[serviceNameLabel])
      if (isRemote(object)) visit('remote', locatorOf(object)?.name)
      else if (object.metadata.labels?.[managedByLabel] !== undefined) visit('slice', object.metadata.name)
      return
    case 'configmaps':
      if (object.metadata.name === 'kcp-root-ca') visit('namespace', namespace)
      break
    case 'deployments':
    case 'services':
    case 'secrets':
    case 'serviceaccounts':
      break
  }
  if (syncedResources.has(resource)) visit(resource, locatorOf(object)?.name)
  if (resource === 'deployments' && change.after === undefined) visit('namespace', namespace)
}

/** A namespace that came or went changes what may be done with everything in it. */
function revisit(context: TriggerContext, cluster: string, namespace: string, downstream: string): void {
  for (const { metadata } of context.upstreamIn('deployments', cluster, namespace)) {
    context.enqueue({ kind: 'deployments', cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.upstreamIn('pods', cluster, namespace)) {
    if (metadata.annotations?.[memberAnnotation] === context.member.name)
      context.enqueue({ kind: 'pod', cluster, namespace, name: metadata.name ?? '' })
  }
  for (const { metadata } of context.downstreamIn('pods', downstream))
    context.enqueue({ kind: 'pod', cluster, namespace, name: metadata.name ?? '' })
  for (const slice of context.downstreamIn('endpointslices', downstream)) {
    context.enqueue({
      kind: isRemote(slice) ? 'remote' : 'slice',
      cluster,
      namespace,
      name: (isRemote(slice) ? locatorOf(slice)?.name : slice.metadata.name) ?? '',
    })
  }
}

/** The id of a logical cluster became known: whatever we hold of it can be visited now. */
function clusterKnown(context: TriggerContext, cluster: string): void {
  for (const namespace of context.views.namespacesOf(cluster)) {
    for (const resource of syncedResources) {
      for (const { metadata } of context.upstreamIn(resource, cluster, namespace)) {
        if (isConcerned(context, resource, cluster, namespace, metadata.name ?? '') || resource === 'deployments') {
          context.enqueue({ kind: resource as VisitKind, cluster, namespace, name: metadata.name ?? '' })
        }
      }
    }
    const space = downstreamSpace(context, { cluster, namespace })
    if (space !== undefined) revisit(context, cluster, namespace, space)
    for (const { metadata } of context.upstreamIn('deployments', cluster, namespace))
      context.enqueue({ kind: 'history', cluster, namespace, name: metadata.name ?? '' })
  }
}

/** A namespace of a deleted logical cluster, which nobody may be left to ask for: made while the last of it went. */
function visitLeftover(context: TriggerContext, downstream: string): void {
  const id = downstream.slice(0, 10)
  if (context.upstream.ids.isGone(id))
    context.enqueue({ kind: 'leftover', cluster: id, namespace: '', name: downstream })
}

function clusterGone(context: TriggerContext, id: string): void {
  for (const { metadata } of context.downstreamIn('namespaces', '')) {
    const { name = '' } = metadata
    if (name.startsWith(`${id}-`)) visitLeftover(context, name)
  }
}
