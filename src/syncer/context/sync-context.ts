// What every step of a member's syncer needs: the caches of both sides, the member, and a way to ask for a visit.
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer, type KubeClient } from '#client/index.ts'
import {
  downstreamNamespace,
  namespaceSuffix,
  parseDownstreamNamespace,
  tryLocator,
  type ClassKindName,
  type Locator,
  type MemberClass,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { EventBudget } from './event-budget.ts'
import type { GatewayPorts } from './gateway-ports.ts'
import type { NamespaceView } from './namespace-view.ts'
import type { PassingReports } from './passing-reports.ts'
import type { ResourceName } from './resources.ts'
import type { SyncFailures } from './sync-failures.ts'
import type { OwnerCluster } from '#syncer/transform/down.ts'
import type { MemberEvent } from '#syncer/transform/event-up.ts'
import type { NodeUp } from '#syncer/transform/node-up.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import type { Upstream } from './upstream.ts'

export interface SyncedMember {
  readonly name: string
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  /** How its pods reach those of other members, and are reached. */
  readonly serviceNetwork: ServiceNetwork
  /** Prefixes of annotations that it allows besides the default ones. */
  readonly annotationPrefixes?: readonly string[]
  /** Its classes of this kind as they are now; undefined: not known. */
  readonly classesOf?: (kind: ClassKindName) => readonly DeepReadonly<MemberClass>[] | undefined
  /** Whether it is lost; absent: never. */
  readonly loss?: MemberLoss
  /** Whether an admin lets go what is not known upstream any more. */
  readonly acceptsDeletions?: () => boolean
}

/** Whether a member is lost. While it is, nothing of what its cache says is written on its pods and EndpointSlices upstream. */
export interface MemberLoss {
  isLost(): boolean
  /** Calls the listener when a member that was lost answers again. Returns the function that ends it. */
  onReturn(listener: () => void): () => void
}

/** What a visit is about. Names in a key are upstream names unless it says otherwise. */
export type VisitKind =
  /** An object that is copied into members; but a pod is visited as `pod`. */
  | ResourceName
  /** An object that a member made, other than those below. */
  | `made:${ResourceName}`
  /** The namespace in the member. */
  | 'namespace'
  /** A namespace of a deleted logical cluster; `cluster` is the id and `name` the name in the member. */
  | 'leftover'
  /** The ReplicaSets of a workload. */
  | 'history'
  /** A node of the member, as a logical cluster shows it. */
  | 'node'
  /** A pod, whoever made it; its name is the same on both sides. */
  | 'pod'
  /** An Event of the member, by its name there. */
  | 'event'
  /** An EndpointSlice that this member created, by its name in the member. */
  | 'slice'
  /** An EndpointSlice of another member, by its upstream name. */
  | 'remoteSlice'

export interface Visit {
  readonly kind: VisitKind
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export function visitKey({ kind, cluster, namespace, name }: Visit): string {
  return `${kind} ${keyFor({ cluster, namespace, name })}`
}

/** The logical cluster of a key, by which the queue is fair. */
export function clusterOfVisit(key: string): string {
  return clusterInKey(key.slice(key.indexOf(' ') + 1))
}

/** Endpoints go first: until they are known elsewhere, requests go to pods that have ended. */
export function isUrgentVisit(key: string): boolean {
  return key.startsWith('slice ') || key.startsWith('remoteSlice ')
}

export function parseVisit(key: string): Visit {
  const blank = key.indexOf(' ')
  const { cluster = '', namespace = '', name } = parseKey(key.slice(blank + 1))
  return { kind: key.slice(0, blank) as VisitKind, cluster, namespace, name }
}

/** What is asked before something is deleted in the member; see DeletionGuard. */
export interface DeletionChecks {
  confirmGone(
    context: SyncContext,
    visit: Visit,
    known: { readonly uid: string } | undefined,
    signal: AbortSignal,
  ): Promise<void>
  findUnlisted(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<KubeObject | undefined>
  holdFollower(context: SyncContext, visit: Visit): void
  vanished(): void
}

export interface SyncContext {
  readonly member: SyncedMember
  readonly upstream: Upstream
  readonly downstream: KubeClient
  readonly caches: Readonly<Record<ResourceName, Informer<KubeObject>>>
  readonly clock: Clock
  readonly log: Logger
  readonly guard: DeletionChecks
  /** With service network Gateway: the ports of the gateway in this member. */
  readonly gateway?: GatewayPorts
  readonly passing: PassingReports
  readonly failures: SyncFailures
  /** Of the Events that this syncer writes into each logical cluster. */
  readonly eventBudget: EventBudget
  view(cluster: string, namespace: string): NamespaceView
  /** Namespaces of a logical cluster. */
  namespacesOf(cluster: string): Iterable<string>
  /** Those with workloads in the member. */
  presentIn(cluster: string): ReadonlySet<string>
  /** Objects of an upstream namespace. */
  upstreamIn(resource: ResourceName, cluster: string, namespace: string): Iterable<DeepReadonly<KubeObject>>
  /** The upstream ReplicaSet of a Deployment's ReplicaSet in this member, by its name there. */
  historyReportedAs(cluster: string, namespace: string, name: string): DeepReadonly<KubeObject> | undefined
  /** The nodes of the member, in the form that tenants see. */
  readonly nodes: Informer<NodeUp>
  /** Objects of a namespace in the member, by its name there. */
  downstreamIn(resource: ResourceName, namespace: string): Iterable<DeepReadonly<KubeObject>>
  /** Objects of a namespace in the member that this object there controls. */
  controlledBy(
    resource: 'pods' | 'replicasets' | 'jobs' | 'controllerrevisions',
    namespace: string,
    owner: { readonly kind: string; readonly name: string },
  ): Iterable<DeepReadonly<KubeObject>>
  /** EndpointSlices of a namespace in the member that name this pod. */
  slicesWith(namespace: string, pod: string): Iterable<DeepReadonly<KubeObject>>
  /** An Event of a namespace in the member. */
  memberEvent(namespace: string, name: string): DeepReadonly<MemberEvent> | undefined
  podContext(cluster: string, clusterId: ClusterId, namespace: string): Omit<PodContext, 'accountAutomount'>
  /** Whether custom resources of the namespace that the member exports are, or should be, there. */
  hasExported(cluster: string, namespace: string): boolean
  enqueue(visit: Visit): void
  readonly enqueueAfter: (visit: Visit, ms: number) => void
}

/** Whether the report waits for the next one; then the visit comes again when it must be written. */
export function isPostponed({ passing, enqueueAfter }: SyncContext, report: string, visit: Visit): boolean {
  const waitMs = passing.wait(report)
  if (waitMs !== undefined) enqueueAfter(visit, waitMs)
  return waitMs !== undefined
}

/** The visit in which an object of this resource is copied into the member. */
export function visitKindOf(resource: ResourceName): VisitKind {
  return resource === 'pods' ? 'pod' : resource
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

/** The upstream namespace of a namespace in the member; undefined if it is not of a known logical cluster. */
export function upstreamNamespaceOf(
  context: SyncContext,
  downstream: string,
): { cluster: string; clusterId: ClusterId; namespace: string } | undefined {
  const parsed = parseDownstreamNamespace(downstream)
  const cluster = parsed === undefined ? undefined : context.upstream.ids.nameOf(parsed.clusterId)
  if (parsed === undefined || cluster === undefined) return undefined
  const { clusterId, suffix, isShortened } = parsed
  const namespace = isShortened ? (wholeName(context, downstream, cluster, suffix) ?? suffix) : suffix
  return { cluster, clusterId, namespace }
}

/** The upstream namespace whose name is shortened in the member; undefined: the name only looks so. */
function wholeName(context: SyncContext, downstream: string, cluster: string, suffix: string): string | undefined {
  const known = locatorOf(downstreamObject(context, 'namespaces', '', downstream))?.name
  if (known !== undefined) return known
  // Our cache does not have the namespace yet.
  for (const namespace of context.namespacesOf(cluster))
    if (namespace !== suffix && namespaceSuffix(namespace) === suffix) return namespace
  return undefined
}

/** The name of a namespace in the member; undefined while the id of the logical cluster is not known. */
export function downstreamNamespaceOf(
  { upstream }: SyncContext,
  { cluster, namespace }: { cluster: string; namespace: string },
): string | undefined {
  const id = upstream.ids.idOf(cluster)
  return id === undefined ? undefined : downstreamNamespace(id, namespace)
}

/**
 * The upstream object of a cached object in the member; undefined if it is not a copy. What a controller made is none, even
 * where it took over the annotations of its owner, as ReplicaSets and ControllerRevisions do. A claim takes over none, and a
 * StatefulSet that deletes its claims becomes the controller of those that it finds.
 */
export function locatorOf(object: DeepReadonly<KubeObject> | undefined): Locator | undefined {
  if (object === undefined) return undefined
  const isControlled = object.metadata.ownerReferences?.some((owner) => owner.controller === true) ?? false
  return isControlled && object.kind !== 'PersistentVolumeClaim' ? undefined : tryLocator(object as KubeObject)
}

/** The logical cluster as transforms need it. */
export function ownerCluster({ member }: SyncContext, cluster: string, clusterId: ClusterId): OwnerCluster {
  const { annotationPrefixes } = member
  return { cluster, clusterId, ...(annotationPrefixes && { annotationPrefixes }) }
}

/** True if the namespace exists in the member and was created for the logical cluster in its name. */
export function isOurs(context: SyncContext, namespace: string): boolean {
  const object = downstreamObject(context, 'namespaces', '', namespace)
  const id = parseDownstreamNamespace(namespace)?.clusterId
  return id !== undefined && locatorOf(object)?.clusterId === id
}
