// The dependencies of endpoints, created once per thread.
import type { Clock } from '#async/index.ts'
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'
import type { AuditRing } from '#virtualapi/audit/index.ts'
import type { AggregatedServers } from '#virtualapi/outbound/aggregation/aggregated-servers.ts'
import type { Availability } from '#virtualapi/outbound/aggregation/availability.ts'
import type { RemoteDocuments } from '#virtualapi/outbound/aggregation/remote-documents.ts'
import type { ClusterObjects, WatchCache } from '#store/watch-cache/index.ts'
import type { KubeClient, Transport } from '#client/index.ts'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import type { TreeCheck } from '#virtualapi/hierarchy/tree-check.ts'
import type { Metrics } from '#telemetry/index.ts'
import type { ServiceAccountTokens } from '#virtualapi/auth/authn/service-account-tokens.ts'
import type { Access } from '#virtualapi/auth/access/index.ts'
import type { MemberAccess } from '#virtualapi/outbound/members/member-access.ts'
import type { TokenReviewer } from '#virtualapi/auth/authn/token-reviewer.ts'
import type { RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { ViewSource } from '#virtualapi/catalog/sharing/view-source.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import type { AllocationFor } from '#virtualapi/kinds/resources/allocation.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import type { ReadableForm } from '#virtualapi/codec/responses.ts'
import type { ApiResponse, BytesResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { Deliveries } from '#virtualapi/flowcontrol/deliveries.ts'
import type { MemberMetrics } from '#virtualapi/outbound/members/member-metrics.ts'
import type { PodConnector } from '#virtualapi/outbound/members/pod-connector.ts'
import type { PodWriter } from '#virtualapi/outbound/members/pod-writer.ts'
import type { ConnectToPod } from '#virtualapi/outbound/calls/resolve-service.ts'
import type { Registry } from '#virtualapi/write/registry/registry.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import type { UnfinishedLists } from './unfinished-lists.ts'
import type { WatchClock } from './watch-clock.ts'

/** The dependencies of the verbs on one object. The offload thread has no others. */
export interface ObjectDependencies {
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly registry: Registry
  readonly catalog: Catalog
  readonly clock: Clock
  /** The allocator of addresses and ports of Services that all threads share. Absent: the allocator of this thread. */
  readonly allocationFor?: AllocationFor
}

/** The dependencies of the endpoints on the main thread. */
export interface EndpointDependencies extends ObjectDependencies {
  readonly watchCache: WatchCache
  readonly directory: ClusterDirectory
  readonly authorizer: RbacAuthorizer
  readonly conversions: Conversions
  readonly deliveries: Deliveries
  readonly offload: Offload
  /** The members and the rules of admins about them; undefined where there can be none. */
  readonly fleet: FollowedFleet | undefined
  readonly podConnector: PodConnector | undefined
  readonly podWriter: PodWriter | undefined
  /** Metrics of pods, as members measure them; undefined without members. */
  readonly memberMetrics: MemberMetrics | undefined
  readonly connectToPod: ConnectToPod
  readonly aggregation: Aggregation
  /** The LogicalClusters of the installation, for their parents. */
  readonly children: ChildClusters
  /** Logical clusters that have moved to other installations. */
  readonly moved: MovedPlaces
  readonly tokenReviewer: TokenReviewer | undefined
  readonly accountTokens: ServiceAccountTokens
  /** Tokens for others to use members and logical clusters. */
  readonly access: Access
  /** The APIs of members for others; undefined without members. */
  readonly memberAccess: MemberAccess | undefined
  /** The logical cluster with the LogicalClusters; undefined with a host. */
  readonly rootId: ClusterId | undefined
  /** The authority of the server's certificate, PEM. */
  readonly servingCa: string
  readonly watchClock: WatchClock
  readonly unfinishedLists: UnfinishedLists
  /** The views of exports. */
  readonly viewSource: ViewSource
  readonly metrics: Pick<Metrics, 'scrape'>
  /** The audit events that users of a logical cluster may read; undefined if it keeps none. Absent: none do. */
  readonly auditRingOf?: (cluster: LogicalCluster) => AuditRing | undefined
  /** Why the server is not ready; undefined if it is. */
  readonly notReady: () => string | undefined
}

export interface FollowedFleet extends Fleet {
  /** Calls `changed` after changes of the fleet, at most once a second, until the returned function is called. */
  onChange(changed: () => void): () => void
}

/** Logical clusters that have moved to other installations. */
export interface MovedPlaces {
  /** Ends what is open in a logical cluster that has moved. */
  leave(objects: ClusterObjects, signal: AbortSignal): Promise<void>
  /** Tells its new place that the move is over; false if that does not answer now. */
  tryOpen(cluster: LogicalCluster, signal: AbortSignal): Promise<boolean>
  /** The answer of its new place. */
  answer(exchange: Exchange): Promise<ApiResponse>
  /** The stream that its new place has upgraded, or the refusal. */
  upgrade(exchange: Exchange): ReturnType<Transport['upgrade']>
}

/** The API servers that APIServices lead to. */
export interface Aggregation {
  readonly servers: AggregatedServers
  readonly documents: RemoteDocuments
  readonly availability: Availability
}

/**
 * The offload threads, as the main thread uses them. Both methods reject with 429 if too many requests wait, and with
 * 503 if the thread was lost.
 */
export interface Offload {
  /** The answer of the endpoint of this call. */
  answer(call: OffloadableCall): Promise<BytesResponse>
  /** Reformats a response. */
  reformat(
    response: BytesResponse,
    form: ReadableForm,
    context: { readonly exchange: Exchange },
  ): Promise<BytesResponse>
}

/** A call as the offload thread gets it. */
export interface OffloadableCall {
  readonly exchange: Exchange
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly target: RegistryTarget
}

/** The LogicalClusters of the installation, for their parents. */
export interface ChildClusters {
  /** The API with the LogicalClusters; undefined until the server follows one. */
  readonly client: KubeClient | undefined
  readonly check: TreeCheck
  /** Calls `changed` after each change of a child of `parent`, its status included. Returns the end of that. */
  follow(parent: ClusterName, changed: () => void): () => void
}
