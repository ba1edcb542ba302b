// What every step of one member's syncer works with: both sides' caches, the member, and where to ask for another visit.
import { tryClusterId, type ClusterId, type KubeObject } from '../apimachinery/meta/index.ts'
import type { Clock } from '../async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer, type KubeClient } from '../client/index.ts'
import { downstreamNamespace, locatorAnnotation, parseAnnotation, type Locator } from '../crds/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { NamespaceView } from './namespace-view.ts'
import type { ResourceName } from './synced-kinds.ts'
import type { PodContext } from './transform/pod-template.ts'
import type { Upstream } from './upstream.ts'

export interface SyncedMember {
  readonly name: string
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  /** Flat: its pods reach pods of other Flat members and are reached by them. */
  readonly serviceNetwork: 'None' | 'Flat'
}

/** One kind of visit per line; the rest of a key says which object: upstream for all but pods and slices. */
export type VisitKind =
  | 'deployments'
  | 'services'
  | 'configmaps'
  | 'secrets'
  | 'serviceaccounts'
  /** Namespace in the member. */
  | 'namespace'
  /** A namespace in the member, by its name there, of a logical cluster (by its id) that is deleted. */
  | 'leftover'
  /** ReplicaSets of a Deployment. */
  | 'history'
  /** A pod, by its upstream name. */
  | 'pod'
  /** An EndpointSlice that this member made, by its downstream name. */
  | 'slice'
  /** An EndpointSlice of another member, by its upstream name. */
  | 'remote'

export interface Visit {
  readonly kind: VisitKind
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export function visitKey({ kind, cluster, namespace, name }: Visit): string {
  return `${kind} ${keyFor({ cluster, namespace, name })}`
}

/** On whose account the visit of this key is: a logical cluster's. */
export function clusterOfVisit(key: string): string {
  return clusterInKey(key.slice(key.indexOf(' ') + 1))
}

export function parseVisit(key: string): Visit {
  const space = key.indexOf(' ')
  const { cluster = '', namespace = '', name } = parseKey(key.slice(space + 1))
  return { kind: key.slice(0, space) as VisitKind, cluster, namespace, name }
}

export interface SyncContext {
  readonly member: SyncedMember
  readonly upstream: Upstream
  readonly downstream: KubeClient
  readonly caches: Readonly<Record<ResourceName, Informer<KubeObject>>>
  readonly clock: Clock
  readonly log: Logger
  view(cluster: string, namespace: string): NamespaceView
  /** Namespaces of a logical cluster upstream, and those of them with workloads in the member. */
  namespacesOf(cluster: string): Iterable<string>
  presentIn(cluster: string): ReadonlySet<string>
  /** Objects of a namespace upstream, or in the member by its downstream name. */
  upstreamIn(resource: ResourceName, cluster: string, namespace: string): Iterable<DeepReadonly<KubeObject>>
  downstreamIn(resource: ResourceName, namespace: string): Iterable<DeepReadonly<KubeObject>>
  podContext(cluster: string, clusterId: ClusterId, namespace: string): Omit<PodContext, 'accountAutomount'>
  enqueue(visit: Visit): void
}

export function upstreamObject(
  { upstream }: SyncContext,
  resource: ResourceName,
  { cluster, namespace, name }: Pick<Visit, 'cluster' | 'namespace' | 'name'>,
): DeepReadonly<KubeObject> | undefined {
  return upstream.informers[resource].store.get(keyFor({ cluster, name, ...(namespace && { namespace }) }))
}

export function downstreamObject(
  { caches }: SyncContext,
  resource: ResourceName,
  namespace: string,
  name: string,
): DeepReadonly<KubeObject> | undefined {
  return caches[resource].store.get(keyFor({ name, ...(namespace && { namespace }) }))
}

/** The namespace upstream of a namespace in the member; undefined where it is not of a logical cluster we know. */
export function upstreamSpace(
  { upstream }: SyncContext,
  downstream: string,
): { cluster: string; clusterId: ClusterId; namespace: string } | undefined {
  const clusterId = tryClusterId(downstream.slice(0, 10))
  if (clusterId === undefined || downstream[10] !== '-') return undefined
  const cluster = upstream.ids.nameOf(clusterId)
  return cluster === undefined ? undefined : { cluster, clusterId, namespace: downstream.slice(11) }
}

/** The namespace in the member; undefined while the id of the logical cluster is not known. */
export function downstreamSpace(
  { upstream }: SyncContext,
  { cluster, namespace }: { cluster: string; namespace: string },
): string | undefined {
  const id = upstream.ids.idOf(cluster)
  return id === undefined ? undefined : downstreamNamespace(id, namespace)
}

/** Whose copy a cached downstream object is. */
export function locatorOf(object: DeepReadonly<KubeObject> | undefined): Locator | undefined {
  if (object === undefined) return undefined
  const value = parseAnnotation(object as KubeObject, locatorAnnotation)
  const complete = ['cluster', 'clusterId', 'namespace', 'name', 'uid'].every(
    (field) => typeof value[field] === 'string',
  )
  return complete ? (value as unknown as Locator) : undefined
}

/** The namespace exists in the member, carries our locator and is not being deleted. */
export function isOurs(context: SyncContext, namespace: string): boolean {
  const object = downstreamObject(context, 'namespaces', '', namespace)
  return locatorOf(object)?.clusterId === namespace.slice(0, 10)
}
