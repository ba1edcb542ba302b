// Wires the virtual API server: from a store to a loopback and a listener.
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import { createClient, tracedTransport, type KubeClient, type Transport } from '#client/index.ts'
import { createEgress, tracedEgress, type EgressOptions } from '#network/egress/index.ts'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { StorageBudget, type Store } from '#store/index.ts'
import { createHub, type Hub } from '#store/hub/index.ts'
import { containerMemory, processTracer, type Logger, type Metrics } from '#telemetry/index.ts'
import type { AuditSink } from './request/request-audit.ts'
import {
  createAuthenticator,
  createServiceAccountTokens,
  type FrontProxyConfig,
  type MemberTokens,
  type Pki,
} from './auth/authn/index.ts'
import { createAuthorizer } from './auth/authz/index.ts'
import { createBaseLayer, type ApiAddress } from './catalog/bootstrap/index.ts'
import type { LogicalCluster } from './request/logical-cluster.ts'
import { createDirectory, type InformedDirectory } from './background/directory/informed-directory.ts'
import type { ClusterFilter, ClusterOwnership } from './request/ownership.ts'
import { defaultEventTtlMs, expireEvents } from './background/expiry/index.ts'
import { ObjectGraph } from './background/graph/index.ts'
import { noPodConnector } from './endpoints/forwarded/connect.ts'
import { UnfinishedLists } from './endpoints/call/unfinished-lists.ts'
import { WatchClock } from './endpoints/call/watch-clock.ts'
import { OffloadThread } from './server/offload/offload-thread.ts'
import type { Members } from './outbound/members/index.ts'
import { Conversions } from './write/conversion/conversions.ts'
import { AggregatedServers } from './outbound/aggregation/aggregated-servers.ts'
import { Availability } from './outbound/aggregation/availability.ts'
import { RemoteDocuments } from './outbound/aggregation/remote-documents.ts'
import { writeAvailable } from './outbound/aggregation/write-available.ts'
import { createOutbound } from './outbound/calls/outbound.ts'
import { dialPod } from './outbound/members/dial-pod.ts'
import { createServiceResolver, type ConnectToPod } from './outbound/calls/resolve-service.ts'
import { ClusterCatalog } from './catalog/cluster-catalog.ts'
import { readFacts, stampRevision } from './kinds/resources/object-bytes.ts'
import { packedManagers } from './kinds/resources/packed-managers.ts'
import { findBoundObject } from './auth/authn/find-bound-object.ts'
import { findPlacedAccount } from './auth/authn/placed-accounts.ts'
import { createRegistry } from './write/registry/create-registry.ts'
import { Fairness, type FairnessLimits } from './flowcontrol/fairness.ts'
import { Deliveries } from './flowcontrol/deliveries.ts'
import { EventLoopShare } from './flowcontrol/event-loop-share.ts'
import { listen, type Listener, type ListenOptions } from './server/listener.ts'
import { loopbackTransport } from './server/loopback.ts'
import type { ServerParts } from './server/parts.ts'
import type { PeerConnections } from './server/peer-connections.ts'
import { MemoryGuard } from './server/limits/memory-guard.ts'
import { PassMonitor } from './server/limits/pass-monitor.ts'
import { serverMetrics } from './server/server-metrics.ts'

export interface VirtualApiOptions {
  readonly store: Store
  readonly pki: Pki
  /** Where others reach this server: the endpoints of the Service `kubernetes`. Absent: it has none. */
  readonly address?: ApiAddress
  /** The logical cluster `root`, which holds the LogicalClusters where there is no host. */
  readonly root?: LogicalCluster
  /** The front proxy whose identity headers are trusted; none without a host. */
  readonly frontProxy?: () => FrontProxyConfig | undefined
  /** Called with the loopback, because members may be registered in one of our own logical clusters. */
  readonly members?: (loopback: Transport) => Members
  readonly limits?: FairnessLimits
  /** Timeout of requests other than watches and streams. Default 60,000, as in kube-apiserver. */
  readonly requestTimeoutMs?: number
  /** Storage quota of one logical cluster; `root` has none. Default: no quota. */
  readonly storageBytes?: number
  /** How long an Event stays after it was last written. Default one hour, as in kube-apiserver. */
  readonly eventTtlMs?: number
  /** Takes the audit lines of every request. Default: none are written. */
  readonly audit?: AuditSink
  /** Which addresses webhooks and the like may be called at. */
  readonly egress?: EgressOptions
  /** Which logical clusters this process answers for, and connections to those that own the others. Default: all. */
  readonly sharing?: { readonly ownership: ClusterOwnership; readonly peers: PeerConnections }
  readonly log: Logger
  readonly metrics: Metrics
  readonly clock?: Clock
  readonly signal: AbortSignal
}

export interface VirtualApi extends AsyncDisposable {
  /** Rejects when the server cannot serve any more; the process should then exit and be restarted. */
  readonly broken: Promise<never>
  /** Sends requests from within the process, as the installation itself. */
  readonly loopback: Transport
  readonly directory: InformedDirectory
  readonly hub: Hub
  /** Changes and owner references of all objects, for controllers. */
  readonly graph: ObjectGraph
  /** Serves the LogicalClusters of `client`. Resolves once all existing ones are known: the server is ready then. */
  follow(client: KubeClient): Promise<void>
  /** A client of one logical cluster, or of all (`*`, read only), over the loopback. `userAgent`: who writes; default kcp. */
  client(cluster: ClusterName | '*', options?: { readonly userAgent?: string }): KubeClient
  listen(options: Omit<ListenOptions, 'signal'>): Promise<Listener>
  /** Makes the server not ready, so that no new clients are sent to it. It goes on to serve. */
  retire(): void
}

/** The server without a listener; nothing is served to sockets until `listen`. */
export async function createVirtualApi(options: VirtualApiOptions): Promise<VirtualApi> {
  const { store, pki, root, frontProxy, members, limits, log, metrics, clock = systemClock, signal } = options
  const tracer = processTracer()
  const directory = createDirectory(root === undefined ? {} : { root })
  const { address } = options
  const frontProxyCa = (id: ClusterId): string => pki.frontProxy(id).ca
  const baseLayer = createBaseLayer({ directory, rootCa: pki.servingCa, frontProxyCa, ...(address && { address }) })
  const state: { ready: boolean; retired?: true; broken?: string } = { ready: false }
  const onBroken = (error: Error): void => {
    state.broken = error.message
    log.error('the store can not be followed any more: this process must be restarted', { error })
    broken.reject(error)
  }
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => undefined)
  const { storageBytes = Infinity } = options
  const hub = await createHub(store, {
    stamp: stampRevision,
    packing: packedManagers,
    readFacts,
    baseLayer,
    quotaAccount: (cluster) => new StorageBudget(cluster === root?.id ? Infinity : storageBytes),
    onBroken,
    signal,
  })
  const watchClock = new WatchClock()
  const unfinishedLists = new UnfinishedLists()
  const loopShare = new EventLoopShare()
  const authorizer = createAuthorizer({ hub })
  // A cycle: the parts need the members, the members the loopback, and the loopback the parts. So members come later.
  const lazy: { members?: ReturnType<NonNullable<VirtualApiOptions['members']>> } = {}
  const findAccount = findPlacedAccount(hub)
  const memberTokens: MemberTokens = {
    findPlacedAccount: async ({ memberId, clusterId, ...account }, waiting) => {
      const member = await lazy.members?.nameOf(memberId, waiting)
      return member === undefined
        ? undefined
        : await findAccount({ ...account, cluster: clusterId, member }, clock.now(), waiting)
    },
    verify: async (memberId, token, waiting) => lazy.members?.memberTokens.verify(memberId, token, waiting),
  }
  const accountTokens = createServiceAccountTokens({
    privateKey: pki.serviceAccountKey,
    directory,
    find: findBoundObject(hub),
    clock,
  })
  const authenticator = createAuthenticator({
    pki,
    directory,
    memberTokens,
    accountTokens,
    clock,
    ...(frontProxy === undefined ? {} : { frontProxy }),
  })
  const outboundSeconds = metrics.histogram({
    name: 'kcp_outbound_call_duration_seconds',
    help: "Calls that tenants' data caused, such as those of webhooks, waiting for a free place included",
    labels: ['outcome'],
  })
  const observe: EgressOptions['observe'] = (outcome, seconds) => outboundSeconds.observe(seconds, { outcome })
  const connectToPod: ConnectToPod = async (id, to, waiting) => {
    const [cluster, connector] = [directory.byId(id), lazy.members?.podConnector]
    if (cluster === undefined || connector === undefined) throw noPodConnector()
    return await dialPod(connector, { cluster, ...to }, waiting)
  }
  const plainEgress = createEgress({ observe, ...options.egress })
  const egress = tracer === undefined ? plainEgress : tracedEgress(plainEgress, tracer)
  const fairness = new Fairness({ memoryBytes: containerMemory(), ...limits })
  const watchUnits = (cluster: ClusterId): number => fairness.watchesOf(cluster)
  const endCalls = () => egress.shed()
  const memoryGuard = new MemoryGuard({ hub, exempt: root?.id, log, metrics, endCalls, watchUnits })
  const resolveService = createServiceResolver({ hub, connectToPod })
  const turnOf = (cluster: ClusterId): Promise<void> | undefined => loopShare.turn(cluster)
  const outbound = createOutbound({ egress, resolveService, turnOf })
  const life = childSignal(signal)
  const servers = new AggregatedServers({ egress, resolveService, frontProxy: (id) => pki.frontProxy(id) })
  const availability = new Availability({
    hub,
    servers,
    write: writeAvailable({ hub, directory, clock, client: (name) => api.client(name) }),
    onError: (error) => log.warn('the condition of an APIService was not kept', { error }),
    signal: life.signal,
  })
  const aggregation = {
    servers,
    availability,
    documents: new RemoteDocuments({ servers, turnOf, signal: life.signal }),
  }
  const catalog = new ClusterCatalog({ hasMembers: () => (lazy.members?.fleet.all().length ?? 0) > 0 })
  const conversions = new Conversions({ outbound, turnOf })
  const mayRunPods = ({ labels }: LogicalCluster): boolean => lazy.members?.mayRunPods(labels) ?? true
  const fleet = () => lazy.members?.fleet
  const offload = new OffloadThread({ hasRoot: root !== undefined, outbound, mayRunPods, fleet })
  const parts: ServerParts = {
    hub,
    directory,
    registry: createRegistry({
      authorizer,
      hasRoot: root !== undefined,
      fleet,
      mayRunPods,
      catalog,
      outbound,
      conversions,
    }),
    conversions,
    catalog,
    authenticator,
    authorizer,
    fairness,
    loopShare,
    passMonitor: new PassMonitor({ log, metrics, warmsUp: true }),
    memoryGuard,
    deliveries: new Deliveries(loopShare),
    offload,
    connectToPod,
    aggregation,
    get fleet() {
      return lazy.members?.fleet
    },
    get podConnector() {
      return lazy.members?.podConnector
    },
    get podWriter() {
      return lazy.members?.podWriter
    },
    get memberMetrics() {
      return lazy.members?.metrics
    },
    tokenReviewer: authenticator,
    accountTokens,
    watchClock,
    unfinishedLists,
    clock,
    log,
    metrics: serverMetrics(metrics, { hub, watchClock, storageBytes }),
    auditSink: options.audit,
    requestTimeoutMs: options.requestTimeoutMs ?? 60_000,
    notReady: () => state.broken ?? (state.retired ? 'the server is stopping' : notSynced(state.ready)),
    ...options.sharing,
  }
  const plainLoopback = loopbackTransport(parts)
  // Requests of our own controllers are steps of their visits.
  const loopback =
    tracer === undefined ? plainLoopback : tracedTransport(plainLoopback, { tracer, server: () => 'loopback' })
  if (members !== undefined) lazy.members = members(loopback)
  const ttlMs = options.eventTtlMs ?? defaultEventTtlMs
  const ownership = options.sharing?.ownership
  // Whatever was loaded before this process owned it may lack what another one has written since.
  const unload = (isMoved: ClusterFilter): void => {
    for (const { id } of directory.all()) if (isMoved(id)) hub.unload(id)
  }
  const unfollow = ownership?.follow({ gained: unload, lost: unload })
  const owns: ClusterFilter = (id) => ownership?.owns(id) ?? true
  const expiring = expireEvents({ store, clock, log, ttlMs, owns }, life.signal)
  const api: VirtualApi = {
    broken: broken.promise,
    loopback,
    directory,
    hub,
    graph: new ObjectGraph({ hub, catalog: parts.catalog, directory, baseLayer, ...(ownership && { ownership }) }),
    async follow(client) {
      const followed = directory.follow({ client, log, signal })
      await followed.synced(signal)
      state.ready = true
    },
    client: (cluster, clientOptions) => createClient(loopback, { basePath: `/clusters/${cluster}`, ...clientOptions }),
    retire: () => void (state.retired = true),
    listen: (listenOptions) => listen(parts, { ...listenOptions, signal }),
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the server is shutting down', 'AbortError'))
      life[Symbol.dispose]()
      unfollow?.()
      await expiring
      await availability[Symbol.asyncDispose]()
      await offload[Symbol.asyncDispose]()
      memoryGuard[Symbol.dispose]()
      await egress[Symbol.asyncDispose]()
      watchClock[Symbol.dispose]()
      unfinishedLists[Symbol.dispose]()
      await lazy.members?.[Symbol.asyncDispose]()
      await hub[Symbol.asyncDispose]()
    },
  }
  return api
}

function notSynced(isReady: boolean): string | undefined {
  return isReady ? undefined : 'the list of logical clusters is not read yet'
}
