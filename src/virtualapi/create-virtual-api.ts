// The virtual API server put together: from a store to a loopback and a listener.
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import { createClient, tracedTransport, type KubeClient, type Transport } from '#client/index.ts'
import type { MemberDialer } from '#client/member/index.ts'
import { createEgress, tracedEgress, type Egress, type EgressOptions } from '#network/egress/index.ts'
import { sessionKinds } from '#network/tunnel/index.ts'
import { isJsonObject, type ClusterId, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStoreError, StorageBudget, type Store } from '#store/index.ts'
import { createWatchCache, type BaseLayer, type WatchCache } from '#store/watch-cache/index.ts'
import { auditDelivered, type UsageHistory } from '#crds/index.ts'
import { containerMemory, processTracer, type Logger, type Metrics } from '#telemetry/index.ts'
import { ClusterAudits } from './audit/index.ts'
import type { AuditLog } from './request/request-audit.ts'
import {
  createAuthenticator,
  createServiceAccountTokens,
  findBoundObject,
  type FrontProxyConfig,
  type Pki,
} from './auth/authn/index.ts'
import { Access, AccessGate, createAccessTokens, type AskHost } from './auth/access/index.ts'
import { createSignIn, type InstallationSignIn, type ReadIssuer, type SignIn } from './auth/sign-in/index.ts'
import { createAuthorizer, type RbacAuthorizer } from './auth/authz/index.ts'
import { createBaseLayer, type ApiAddress } from './catalog/bootstrap/index.ts'
import type { ClusterDirectory, LogicalCluster } from './request/logical-cluster.ts'
import { UserActivity } from './background/activity/index.ts'
import {
  auditCondition,
  authenticationCondition,
  authenticationValid,
  ConditionReports,
} from './background/condition-reports/index.ts'
import { createDirectory, type InformedDirectory } from './background/directory/informed-directory.ts'
import type { PlainCluster } from './request/plain-cluster.ts'
import type { ClusterFilter, ClusterOwnership } from './request/ownership.ts'
import { defaultEventTtlMs, expireEvents } from './background/expiry/index.ts'
import { ObjectGraph } from './background/graph/index.ts'
import { MovedClusters } from './endpoints/forwarded/moved.ts'
import { UnfinishedLists } from './endpoints/call/unfinished-lists.ts'
import { WatchClock } from './endpoints/call/watch-clock.ts'
import { tellDefinition } from './server/offload/told-definition.ts'
import { OffloadThread } from './server/offload/offload-thread.ts'
import type { Members } from './outbound/members/index.ts'
import { Conversions } from './write/conversion/conversions.ts'
import { AggregatedServers } from './outbound/aggregation/aggregated-servers.ts'
import { Availability } from './outbound/aggregation/availability.ts'
import { RemoteDocuments } from './outbound/aggregation/remote-documents.ts'
import { writeAvailable } from './outbound/aggregation/write-available.ts'
import { createOutbound } from './outbound/calls/outbound.ts'
import { LateMembers } from './outbound/members/late-members.ts'
import { createServiceResolver } from './outbound/calls/resolve-service.ts'
import type { ServiceResolver } from './outbound/calls/service-resolver.ts'
import { childDefinitions } from './hierarchy/child-clusters.ts'
import { createAncestors } from './hierarchy/ancestors.ts'
import { countDefinitions, SubtreeBudgets, type Kept, type KeptObjects } from './hierarchy/subtree-budgets.ts'
import { UsagePublisher, UsageRecorder } from './background/usage/index.ts'
import { UsageMeter } from './flowcontrol/usage-meter.ts'
import { SubtreeFlow } from './hierarchy/subtree-flow.ts'
import { createTreeCheck, type TreeCheck } from './hierarchy/tree-check.ts'
import { inheritedDefinitions } from './hierarchy/inherited-definitions.ts'
import { ClusterCatalog } from './catalog/cluster-catalog.ts'
import { BindingSource } from './catalog/sharing/binding-source.ts'
import { createSharedApis } from './catalog/sharing/shared-apis.ts'
import { ViewSource } from './catalog/sharing/view-source.ts'
import { SharingIndex } from './catalog/sharing/sharing-index.ts'
import type { SharedApis } from '#reconcile/object-graph/index.ts'
import { decodeObject, readFacts, stampRevision } from './kinds/resources/object-bytes.ts'
import { packedManagers } from './kinds/resources/packed-managers.ts'
import { findPlacedAccount } from './auth/authn/placed-accounts.ts'
import { createProviders } from './write/admission/provider-admission.ts'
import { createRegistry } from './write/registry/create-registry.ts'
import { Fairness, type FairnessLimits } from './flowcontrol/fairness.ts'
import { Deliveries } from './flowcontrol/deliveries.ts'
import { EventLoopShare } from './flowcontrol/event-loop-share.ts'
import { AgentEndpoints, AgentRegistry, createTunnels, Enrolment, TunnelReports, type Tunnels } from './agents/index.ts'
import { Console, type ConsoleOptions } from './console/index.ts'
import { listen, type Listener, type ListenOptions } from './server/listener.ts'
import { listenLocally } from './server/local-listener.ts'
import { loopbackTransport } from './server/loopback.ts'
import type { ServerDependencies } from './server/dependencies.ts'
import type { UserInfo } from './request/user-info.ts'
import type { PeerConnections } from './server/peer-connections.ts'
import { Readiness } from './server/readiness.ts'
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
  /**
   * Serves only the logical cluster `root`, at paths without a prefix, as a kube-apiserver does. Certificates of
   * `clientCa` (PEM) are valid there.
   */
  readonly plain?: { readonly clientCa: string; readonly withoutPlugins: readonly string[] }
  /** The front proxy whose identity headers are trusted; none without a host. */
  readonly frontProxy?: () => FrontProxyConfig | undefined
  /** Asks the host's RBAC about users of the host; absent without a host. */
  readonly askHost?: AskHost
  /**
   * Called with the loopback, because members may be registered in one of our own logical clusters, and with the
   * tunnels to members in pull mode.
   */
  readonly members?: (own: { readonly loopback: Transport; readonly dialer: MemberDialer }) => Members
  readonly limits?: FairnessLimits
  /** Timeout of requests other than watches and streams. Default 60,000, as in kube-apiserver. */
  readonly requestTimeoutMs?: number
  /** Storage quota of one logical cluster; `root` has none. Default: no quota. */
  readonly storageBytes?: number
  /** Lifetime of an Event after its last write. Default one hour, as in kube-apiserver. */
  readonly eventTtlMs?: number
  /** False: logical clusters do not serve apis.kcp.io. Default true. */
  readonly sharedApis?: boolean
  /** Keeps rows of usage beside the LogicalClusters of the client. Default: none are kept. */
  readonly usage?: { readonly everyMs: number; readonly history: (client: KubeClient) => UsageHistory }
  /** The audit log of the installation. Default: none. */
  readonly audit?: AuditLog
  /** The identity providers that the installation trusts, as they are now. Default: none. */
  readonly signIn?: () => InstallationSignIn
  /** The addresses that calls caused by tenants, such as those of webhooks, may reach. */
  readonly egress?: EgressOptions
  /** The logical clusters of this process, and connections to the processes of the others. Default: all are its own. */
  readonly sharing?: { readonly ownership: ClusterOwnership; readonly peers: PeerConnections }
  /** Why another worker of this server is not ready; undefined if all are. Default: there are no others. */
  readonly othersNotReady?: () => string | undefined
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
  /**
   * Sends requests from within the process as an administrator of the logical cluster, to whose requests its quotas,
   * policies and webhooks apply.
   */
  loopbackOf(cluster: ClusterId, user: string): Transport
  readonly directory: InformedDirectory
  readonly watchCache: WatchCache
  /** Changes and owner references of all objects, for controllers. */
  readonly graph: ObjectGraph
  /** APIExports and their consumers, for controllers. */
  readonly sharing: SharedApis
  /** Serves the LogicalClusters of `client`. Resolves once all existing ones are known: the server is ready then. */
  follow(client: KubeClient): Promise<void>
  /**
   * A client of one logical cluster, or of all (`*`, read only), over the loopback. `userAgent`: who writes; default
   * kcp.
   */
  client(cluster: ClusterName | '*', options?: { readonly userAgent?: string }): KubeClient
  /**
   * Serves the console on all listeners that are opened afterwards. Call it at most once. The caller disposes of the
   * result.
   */
  openConsole(options: Omit<ConsoleOptions, 'key' | 'usage' | 'signal'>): AsyncDisposable
  /** Opens connections to members in pull mode. */
  readonly dialer: MemberDialer
  listen(options: Omit<ListenOptions, 'signal' | 'console' | 'agents'>): Promise<Listener>
  /** Listens on a Unix socket for the other workers of this server. Rejects if others can reach the socket. */
  listenLocally(path: string): Promise<AsyncDisposable>
  /** Why this process is not ready; undefined if it is. */
  readonly notReady: string | undefined
  /** Makes the server not ready, so that no new clients are sent to it. It goes on to serve. */
  retire(): void
}

/** The server without a listener; nothing is served to sockets until `listen`. */
export async function createVirtualApi(options: VirtualApiOptions): Promise<VirtualApi> {
  const settings = { clock: systemClock, ...options }
  const { root, log, signal } = settings
  // Disposed of in reverse order: each part ends before the parts that it uses.
  await using stack = new AsyncDisposableStack()
  const readiness = new Readiness(log)
  // A plain cluster has no LogicalClusters to follow.
  if (root?.isPlain === true || settings.plain !== undefined) readiness.synced()
  const directory = createDirectory(root === undefined ? {} : { root })
  const baseLayer = createServerBaseLayer(settings, directory)
  const logicalClusterSource: { client?: KubeClient } = {}
  const objects: KeptObjects = {
    inMemory: (id) => keptOf(watchCache, id),
    read: (id) => readKept(watchCache, id, signal),
  }
  const budgets = new SubtreeBudgets(directory, objects)
  const watchCache: WatchCache = stack.use(await openWatchCache(settings, { baseLayer, readiness, budgets }))
  // A restore makes LogicalClusters with the uids, and so the ids, that deleted ones had.
  const reopen: Parameters<typeof directory.onChange>[0] = ({ after }) => {
    if (after?.deleting === false) watchCache.reopen(after.id)
  }
  stack.defer(directory.onChange(reopen))
  const members = stack.use(new LateMembers())
  const life = childSignal(signal)
  const client: VirtualApi['client'] = (cluster, clientOptions) =>
    createClient(loopback, { basePath: `/clusters/${cluster}`, ...clientOptions })
  const dependencies = createParts(settings, {
    watchCache,
    directory,
    budgets,
    source: logicalClusterSource,
    members,
    readiness,
    client,
    stack,
    life: life.signal,
  })
  const loopback = createLoopback(dependencies)
  const tunnels = stack.use(createTunnels(dependencies))
  for (const kind of sessionKinds)
    settings.metrics.gauge({
      name: `kcp_agent_${kind}_sessions`,
      help: `Open ${kind} sessions of agents of members with this process; an agent keeps one`,
      read: () => tunnels.sessionsOf(kind),
    })
  if (settings.members !== undefined) members.set(settings.members({ loopback, dialer: tunnels }))
  const agents = stack.adopt(openAgentEndpoints(settings, { dependencies, members, tunnels }), (endpoints) =>
    endpoints?.[Symbol.dispose](),
  )
  const ownership = settings.sharing?.ownership
  const graph = new ObjectGraph({
    watchCache,
    catalog: dependencies.catalog,
    directory,
    baseLayer,
    ...(ownership && { ownership }),
  })
  if (ownership !== undefined)
    stack.defer(
      watchCache.observe({ changed: ({ entry }) => budgets.touched(entry.key.cluster), loaded: () => undefined }),
    )
  stack.defer(unloadMovedClusters(settings, { watchCache, directory }))
  stack.defer(expireOldEvents(settings, life.signal))
  stack.defer(() => {
    life.abort(new DOMException('the server is shutting down', 'AbortError'))
    life[Symbol.dispose]()
  })
  let stopUsage: (() => Promise<void>) | undefined
  stack.defer(() => stopUsage?.())
  stack.use(
    new UsagePublisher({
      directory,
      budgets,
      flow: dependencies.subtreeFlow,
      client: () => logicalClusterSource.client,
      owns: (id) => settings.sharing?.ownership.owns(id) ?? true,
      log,
    }),
  )

  const owned = stack.move()
  let opened: Console | undefined
  return {
    broken: readiness.broken,
    loopback,
    loopbackOf: (id, name) => loopbackTransport(dependencies, administrator(id, name)),
    directory,
    watchCache,
    graph,
    sharing: dependencies.sharing,
    async follow(source) {
      logicalClusterSource.client = source
      const followed = directory.follow({ client: source, log, signal })
      await followed.synced(signal)
      readiness.synced()
      stopUsage ??= recordUsage(settings, {
        dependencies,
        directory,
        watchCache,
        objects,
        client: source,
        signal: life.signal,
      })
    },
    client,
    retire: () => readiness.retire(),
    openConsole: (consoleOptions) =>
      (opened = new Console(dependencies, {
        ...consoleOptions,
        ...(settings.usage && { usage: settings.usage.history(consoleOptions.client) }),
        key: settings.pki.consoleKey(),
        signal,
      })),
    dialer: tunnels,
    listen: (listenOptions) =>
      listen(dependencies, { ...listenOptions, ...(agents && { agents }), ...(opened && { console: opened }), signal }),
    listenLocally: (path) =>
      listenLocally(dependencies, { path, ...(agents && { agents }), ...(opened && { console: opened }), signal }),
    get notReady() {
      return readiness.why
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

type Settings = VirtualApiOptions & { readonly clock: Clock }

/** The endpoints of agents; undefined for a server without members. */
function openAgentEndpoints(
  { pki, clock }: Settings,
  { dependencies, members, tunnels }: { dependencies: ServerDependencies; members: LateMembers; tunnels: Tunnels },
): AgentEndpoints | undefined {
  const { registrations } = members
  if (registrations === undefined) return undefined
  const { client, informer } = registrations
  const registry = new AgentRegistry({ members: informer, clientCa: pki.clientCa, clock })
  const enrolment = new Enrolment({ pki, client, members: informer, clock })
  const reports = new TunnelReports({ client, members: informer, clock, log: dependencies.log })
  return new AgentEndpoints(dependencies, { tunnels, registry, enrolment, reports })
}

function createServerBaseLayer({ pki, address, plain }: Settings, directory: ClusterDirectory): BaseLayer {
  const frontProxyCa = (id: ClusterId): string => pki.frontProxy(id).ca
  return createBaseLayer({
    directory,
    rootCa: pki.servingCa,
    frontProxyCa,
    isPlain: plain !== undefined,
    ...(address && { address }),
  })
}

function openWatchCache(
  { store, root, storageBytes = Infinity, signal }: Settings,
  {
    baseLayer,
    readiness,
    budgets,
  }: { readonly baseLayer: BaseLayer; readonly readiness: Readiness; readonly budgets: SubtreeBudgets },
): Promise<WatchCache> {
  return createWatchCache(store, {
    stamp: stampRevision,
    packing: packedManagers,
    readFacts,
    baseLayer,
    quotaAccount: (cluster) =>
      cluster === root?.id ? new StorageBudget(Infinity) : budgets.accountOf(cluster, new StorageBudget(storageBytes)),
    onBroken: (error) => readiness.break(error),
    signal,
  })
}

function keptOf(watchCache: WatchCache, id: ClusterId): Kept | undefined {
  const [load, objects] = [watchCache.loadOf(id), watchCache.loaded(id)]
  if (load === undefined || objects === undefined) return undefined
  const crds = countDefinitions((resource) => objects.count({ resource }))
  return { size: load.objects, bytes: load.bytes, crds }
}

/** Loads a logical cluster to see how much it keeps, and evicts it again. A deleted one keeps nothing. */
async function readKept(watchCache: WatchCache, id: ClusterId, signal: AbortSignal): Promise<Kept> {
  const nothing: Kept = { size: 0, bytes: 0, crds: 0 }
  try {
    await watchCache.cluster(id, { signal })
    return keptOf(watchCache, id) ?? nothing
  } catch (error) {
    if (isStoreError(error, 'Closed')) return nothing
    throw error
  } finally {
    watchCache.release(id)
  }
}

/** The only cluster of the server, if it is to have one. Throws if there is no root. */
function plainOf({ plain, root }: Settings): PlainCluster | undefined {
  if (plain === undefined) return undefined
  if (root === undefined) throw new Error('a plain server needs its cluster as root')
  return { cluster: root, withoutPlugins: plain.withoutPlugins }
}

/** The foundations of the server's parts. */
interface Foundations {
  readonly watchCache: WatchCache
  readonly directory: InformedDirectory
  readonly budgets: SubtreeBudgets
  /** The API with the LogicalClusters, once the server follows it. */
  readonly source: { readonly client?: KubeClient }
  readonly members: LateMembers
  readonly readiness: Readiness
  readonly client: VirtualApi['client']
  /** Takes the parts that have to be disposed of. */
  readonly stack: AsyncDisposableStack
  /** Aborts when the server is disposed of. */
  readonly life: AbortSignal
}

function createParts(settings: Settings, foundations: Foundations): ServerDependencies {
  const { root, log, metrics, clock, limits, storageBytes = Infinity, requestTimeoutMs = 60_000 } = settings
  const { watchCache, directory, budgets, members, readiness, stack } = foundations
  const plain = plainOf(settings)
  const unfinishedLists = stack.use(new UnfinishedLists())
  const watchClock = stack.use(new WatchClock())
  const egress = stack.use(openEgress(settings))
  const fairness = new Fairness({ memoryBytes: containerMemory(), ...limits })
  const endCalls = () => egress.shed()
  const watchUnits = (cluster: ClusterId): number => fairness.watchesOf(cluster)
  const onWebhook = (id: ClusterId): void => {
    const cluster = directory.byId(id)
    if (cluster !== undefined) auditReports.changed(cluster)
  }
  const clusterAudits = stack.use(
    new ClusterAudits({ directory, egress, readToken: tokenReader(watchCache), onWebhook, metrics, log, clock }),
  )
  const auditReports = stack.use(
    new ConditionReports({
      ...{ directory, clock, log, client: () => foundations.source.client },
      type: auditDelivered,
      fieldManager: 'kcp-audit',
      subjectOf: ({ audit }) => audit?.webhook,
      followsSubject: false,
      conditionOf: ({ id }) => auditCondition(clusterAudits.failureOf(id)),
      ...(settings.sharing && { ownership: settings.sharing.ownership }),
    }),
  )
  const unfollowAudits = settings.sharing?.ownership.follow({
    gained: () => undefined,
    lost: (isMoved) => clusterAudits.forget(isMoved),
  })
  stack.defer(() => unfollowAudits?.())
  const otherBytes = (cluster: ClusterId): number => clusterAudits.bytesOf(cluster)
  const memoryGuard = stack.use(
    new MemoryGuard({ watchCache, exempt: root?.id, log, metrics, endCalls, watchUnits, otherBytes }),
  )
  const loopShare = new EventLoopShare()
  const turnOf = (cluster: ClusterId): Promise<void> | undefined => loopShare.turn(cluster)
  const connectToPod = members.connectToPod(directory)
  const resolveService = createServiceResolver({ watchCache, connectToPod })
  const outbound = createOutbound({ egress, resolveService, turnOf })
  const authorizer = createAuthorizer({ watchCache, directory })
  const access = createAccess(settings, foundations, authorizer)
  const { authenticator, accountTokens } = createAuthentication(settings, { ...foundations, egress }, access)
  const ancestors = createAncestors(directory, watchCache)
  const isPlain = plain !== undefined || root?.isPlain === true
  const sharedApis = !isPlain && settings.sharedApis !== false
  const bindings = new BindingSource({ watchCache, directory })
  const index = new SharingIndex({ watchCache, directory, signal: foundations.life })
  const check = withConsumers(
    createTreeCheck(directory, budgets, () => clock.monotonic()),
    { directory, index },
  )
  const sharing = createSharedApis({ index, bindings, watchCache, directory })
  const catalog = new ClusterCatalog({
    hasMembers: () => !members.isEmpty,
    isPlain,
    sharedApis,
    sources: [bindings, inheritedDefinitions(ancestors), childDefinitions(directory)],
  })
  const conversions = new Conversions({ outbound, turnOf })
  const admitted = {
    hasRoot: root !== undefined && plain === undefined,
    plain,
    outbound,
    mayRunPods: (cluster: LogicalCluster) => members.mayRunPods(cluster),
    fleet: () => members.fleet,
    tree: { ancestors, directory, check },
    ...(sharedApis && { providers: createProviders({ directory, watchCache }) }),
  }
  const offload = stack.use(
    new OffloadThread({ ...admitted, definition: (objects, read) => tellDefinition(catalog, objects, read) }),
  )
  return {
    watchCache,
    directory,
    registry: createRegistry({
      ...admitted,
      servesSharedApis: sharedApis,
      authorizer,
      catalog,
      conversions,
      directory,
    }),
    conversions,
    catalog,
    sharing,
    viewSource: new ViewSource({ index, bindings, directory, watchCache, signal: foundations.life }),
    authenticator,
    authorizer,
    fairness,
    subtreeFlow: new SubtreeFlow({
      directory,
      ownership: settings.sharing?.ownership,
      now: () => clock.monotonic(),
    }),
    activity: stack.use(new UserActivity({ directory, client: () => foundations.source.client, clock, log })),
    usageMeter: settings.usage && new UsageMeter(() => clock.monotonic()),
    loopShare,
    passMonitor: new PassMonitor({ log, metrics, warmsUp: true }),
    memoryGuard,
    deliveries: new Deliveries(loopShare),
    offload,
    connectToPod,
    aggregation: createAggregation(settings, { ...foundations, egress, resolveService, turnOf }),
    get fleet() {
      return members.fleet
    },
    get podConnector() {
      return members.podConnector
    },
    get podWriter() {
      return members.podWriter
    },
    get memberMetrics() {
      return members.metrics
    },
    tokenReviewer: authenticator,
    children: {
      get client() {
        return foundations.source.client
      },
      check,
      follow: (parent, changed) =>
        directory.onChildChange((name) => {
          if (name === parent) changed()
        }),
    },
    moved: stack.use(
      new MovedClusters({
        client: () => foundations.source.client,
        objectsOf: ({ id }, signal) => watchCache.cluster(id, { signal }),
        clock,
      }),
    ),
    accountTokens,
    access,
    get memberAccess() {
      return members.access
    },
    rootId: isPlain ? undefined : root?.id,
    servingCa: settings.pki.servingCa,
    watchClock,
    unfinishedLists,
    clock,
    log,
    metrics: serverMetrics(metrics, { watchCache, watchClock, storageBytes }),
    auditLog: settings.audit,
    clusterAudits,
    auditRingOf: (cluster) => clusterAudits.ringOf(cluster),
    requestTimeoutMs,
    notReady: () => readiness.why ?? settings.othersNotReady?.(),
    ...(plain && { plain }),
    ...settings.sharing,
  }
}

/** The check of the tree, which also keeps logical clusters whose exports others use. */
function withConsumers(
  tree: TreeCheck,
  { directory, index }: { readonly directory: Pick<ClusterDirectory, 'byName'>; readonly index: SharingIndex },
): TreeCheck {
  return {
    ...tree,
    removal(name) {
      const why = tree.removal(name)
      const cluster = directory.byName(name)
      if (why !== undefined || cluster === undefined) return why
      const count = index.consumersElsewhere(cluster.id)
      if (count === 0) return undefined
      return `${count} APIBindings of other logical clusters use its APIExports: delete the bindings, or transfer the exports, first`
    },
  }
}

function openEgress({ metrics, egress }: Settings): Egress {
  const outboundSeconds = metrics.histogram({
    name: 'kcp_outbound_call_duration_seconds',
    help: "Calls that tenants' data caused, such as those of webhooks, waiting for a free place included",
    labels: ['outcome'],
  })
  const observe: EgressOptions['observe'] = (outcome, seconds) => outboundSeconds.observe(seconds, { outcome })
  const plain = createEgress({ observe, ...egress })
  const tracer = processTracer()
  return tracer === undefined ? plain : tracedEgress(plain, tracer)
}

/** Reads the bearer token under the key `token` of a Secret. */
function tokenReader(watchCache: WatchCache): ConstructorParameters<typeof ClusterAudits>[0]['readToken'] {
  return async (cluster, { namespace, name }, signal) => {
    const objects = await watchCache.cluster(cluster, { signal })
    const entry = objects.get('secrets', namespace, name)
    const data: unknown = entry && decodeObject(entry.bytes)['data']
    const token = isJsonObject(data) ? data['token'] : undefined
    if (typeof token !== 'string') throw new Error(`Secret ${namespace}/${name} has no key "token"`)
    return Buffer.from(token, 'base64').toString().trim()
  }
}

/** The use of members and logical clusters by others. */
function createAccess(
  { pki, clock, root, plain, askHost }: Settings,
  { watchCache }: Foundations,
  authorizer: RbacAuthorizer,
): Access {
  const find = findBoundObject(watchCache)
  const gate = new AccessGate({ authorizer, root: plain === undefined ? root : undefined, askHost, find })
  return new Access({ tokens: createAccessTokens({ privateKey: pki.serviceAccountKey, clock }), gate, find })
}

function createAuthentication(
  { pki, clock, frontProxy, plain, root, signIn, sharing, log }: Settings,
  { watchCache, directory, members, source, egress, stack }: Foundations & { readonly egress: Egress },
  access: Access,
) {
  const find = findBoundObject(watchCache)
  const users: SignIn = createSignIn({
    installation: signIn ?? (() => nobodyElse),
    disallowed: [],
    read: issuerReader(egress, signIn && stack.use(createEgress({ allow: ['0.0.0.0/0', '::/0'] }))),
    clock,
    log,
    onChange: (cluster) => reports.changed(cluster),
  })
  const reports = stack.use(
    new ConditionReports({
      ...{ directory, clock, log, client: () => source.client },
      type: authenticationValid,
      fieldManager: 'kcp-sign-in',
      subjectOf: ({ authentication }) => authentication,
      followsSubject: true,
      conditionOf: (cluster) => authenticationCondition(users.stateOf(cluster)),
      ...(sharing && { ownership: sharing.ownership }),
    }),
  )
  const accountTokens = createServiceAccountTokens({ privateKey: pki.serviceAccountKey, directory, find, clock })
  const memberTokens = members.tokens(findPlacedAccount(watchCache), clock)
  const authenticator = createAuthenticator({
    pki,
    directory,
    memberTokens,
    accountTokens,
    access,
    clock,
    signIn: users,
    ...(frontProxy && { frontProxy }),
    ...(plain && root && { plain: { clientCa: plain.clientCa, cluster: root.id } }),
  })
  return { authenticator, accountTokens }
}

const nobodyElse: InstallationSignIn = { issuers: [] }

const issuerTimeoutMs = 10_000
const maxIssuerBytes = 512 * 1024

/**
 * Reads documents of identity providers: those that the admin of the installation names at any address, those of a
 * logical cluster where its webhooks may be, too.
 */
function issuerReader(egress: Egress, ofInstallation: Egress = egress): ReadIssuer {
  return async ({ url, certificateAuthority, cluster }, signal) => {
    const answer = await (cluster === undefined ? ofInstallation : egress).call({
      cluster: cluster?.id ?? '',
      url: new URL(url),
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'kcp' },
      ...(certificateAuthority && { caBundle: certificateAuthority }),
      timeoutMs: issuerTimeoutMs,
      maxResponseBytes: maxIssuerBytes,
      signal,
    })
    if (answer.status !== 200) throw new Error(`${url} answers with status ${answer.status}`)
    return answer.body.toString('utf8')
  }
}

interface AggregationDependencies extends Foundations {
  readonly egress: Egress
  readonly resolveService: ServiceResolver
  readonly turnOf: (cluster: ClusterId) => Promise<void> | undefined
}

/** The API servers behind APIServices. */
function createAggregation(
  { pki, log, clock }: Settings,
  { watchCache, directory, client, egress, resolveService, turnOf, stack, life }: AggregationDependencies,
): ServerDependencies['aggregation'] {
  const servers = new AggregatedServers({ egress, resolveService, frontProxy: (id) => pki.frontProxy(id) })
  const availability = stack.use(
    new Availability({
      watchCache,
      servers,
      write: writeAvailable({ watchCache, directory, clock, client }),
      onError: (error) => log.warn('the condition of an APIService was not kept', { error }),
      signal: life,
    }),
  )
  return { servers, availability, documents: new RemoteDocuments({ servers, turnOf, signal: life }) }
}

function administrator(id: ClusterId, name: string): UserInfo {
  return { name, groups: ['system:masters', 'system:authenticated'], extra: {}, realm: { kind: 'cluster', id } }
}

/** The loopback; requests of our own controllers are steps of their reconciles in a trace. */
function createLoopback(dependencies: ServerDependencies): Transport {
  const plain = loopbackTransport(dependencies)
  const tracer = processTracer()
  return tracer === undefined ? plain : tracedTransport(plain, { tracer, server: () => 'loopback' })
}

interface Recording {
  readonly dependencies: ServerDependencies
  readonly directory: ClusterDirectory
  readonly watchCache: WatchCache
  readonly objects: KeptObjects
  readonly client: KubeClient
  readonly signal: AbortSignal
}

/** Starts to keep rows of usage, where there is a history. Returns a function that ends it. */
function recordUsage(
  { usage, sharing, clock, log, metrics, root }: Settings,
  { dependencies, directory, watchCache, objects, client, signal }: Recording,
): (() => Promise<void>) | undefined {
  const meter = dependencies.usageMeter
  if (usage === undefined || meter === undefined) return undefined
  const recorder = new UsageRecorder({
    meter,
    directory,
    objects,
    history: usage.history(client),
    everyMs: usage.everyMs,
    owns: (id) => id !== root?.id && (sharing?.ownership.owns(id) ?? true),
    clock,
    log,
    metrics,
  })
  const unobserve = watchCache.observe({
    changed: ({ entry }) => recorder.touched(entry.key.cluster),
    loaded: () => undefined,
  })
  const life = childSignal(signal)
  const running = recorder.run(life.signal)
  return async () => {
    unobserve()
    life.abort(new DOMException('the server is shutting down', 'AbortError'))
    await running
    life[Symbol.dispose]()
  }
}

/** Starts the expiry of Events. Returns a function that waits for its end. */
function expireOldEvents(settings: Settings, signal: AbortSignal): () => Promise<void> {
  const { store, clock, log, sharing, eventTtlMs: ttlMs = defaultEventTtlMs } = settings
  const owns: ClusterFilter = (id) => sharing?.ownership.owns(id) ?? true
  const expiring = expireEvents({ store, clock, log, ttlMs, owns }, signal)
  return () => expiring
}

/**
 * Unloads logical clusters that this process gains or loses: an object that was loaded before may lack what another
 * process has written since. Returns a function that stops this.
 */
function unloadMovedClusters(
  { sharing }: Settings,
  { watchCache, directory }: Pick<Foundations, 'watchCache' | 'directory'>,
): () => void {
  const unload = (isMoved: ClusterFilter): void => {
    for (const { id } of directory.all()) if (isMoved(id)) watchCache.unload(id)
  }
  const unfollow = sharing?.ownership.follow({ gained: unload, lost: unload })
  return () => unfollow?.()
}
