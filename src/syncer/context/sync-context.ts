// The dependencies of every step of a member's syncer: the caches of both sides, the member, and a way to ask for a
// reconcile.
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import type { Informer, KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { NodeUp } from '#syncer/transform/node-up.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import type { EventBudget } from './event-budget.ts'
import type { GatewayPorts } from './gateway-ports.ts'
import type { PassingReports } from './passing-reports.ts'
import type { CachedObject, ResourceName } from './resources.ts'
import type { Drifts } from './drifts.ts'
import type { SyncFailures } from './sync-failures.ts'
import type { SyncedMember } from './synced-member.ts'
import type { Upstream } from './upstream.ts'
import type { Views } from './views.ts'
import type { ReconcileRequest } from './request.ts'

/** The upstream object whose absence is the reason to delete an object in the member: `kind` is its resource. */
export interface AskedObject extends ReconcileRequest {
  readonly context: SyncContext
  readonly signal: AbortSignal
}

/** The questions before a deletion in the member; see DeletionGuard. */
export interface DeletionChecks {
  confirmGone(asked: AskedObject, known: { readonly uid: string } | undefined): Promise<void>
  findUnlisted(asked: AskedObject): Promise<KubeObject | undefined>
  holdFollower(asked: AskedObject): void
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
  /** `CLUSTER|NAMESPACE` of adopted namespaces that are being given back to the member. */
  readonly releasing: Set<string>
  readonly failures: SyncFailures
  readonly drifts: Drifts
  /** The budget of the Events that this syncer writes into each logical cluster. */
  readonly eventBudget: EventBudget
  /** What each namespace of a logical cluster has in this member. */
  readonly views: Views
  /** The Events of the member. */
  readonly events: Informer<KubeObject>
  /** The nodes of the member, in the form that tenants see. */
  readonly nodes: Informer<NodeUp>
  /** Objects of an upstream namespace. */
  upstreamIn(resource: ResourceName, cluster: string, namespace: string): Iterable<CachedObject>
  /** The upstream ReplicaSet of a Deployment's ReplicaSet in this member, by its name there. */
  historyReportedAs(cluster: string, namespace: string, name: string): CachedObject | undefined
  /** Objects of a namespace in the member, by its name there. */
  downstreamIn(resource: ResourceName, namespace: string): Iterable<CachedObject>
  /** Objects of a namespace in the member that this object there controls. */
  controlledBy(
    resource: 'pods' | 'replicasets' | 'jobs' | 'controllerrevisions' | 'persistentvolumeclaims',
    namespace: string,
    owner: { readonly kind: string; readonly name: string },
  ): Iterable<CachedObject>
  /** EndpointSlices of a namespace in the member that name this pod. */
  slicesWith(namespace: string, pod: string): Iterable<CachedObject>
  podContext(cluster: string, clusterId: ClusterId, namespace: string): Omit<PodContext, 'accountAutomount'>
  /** Whether the member has, or should have, custom resources of the namespace whose API it exports. */
  hasExported(cluster: string, namespace: string): boolean
  enqueue(request: ReconcileRequest): void
  enqueueAfter(request: ReconcileRequest, ms: number): void
  /** Notes the deletion of an upstream copy of an object that this member made, or of a tenant's pod that it runs. */
  copyDeleted(request: ReconcileRequest, copy: CachedObject): void
}
