// `kcp apiserver`: the virtual API server over Records in the host's etcd, registered with the host's aggregator.
import { ensureCrds } from '#operator/index.ts'
import { kcpCrds, storageCrds } from '#crds/index.ts'
import { sleep } from '#async/index.ts'
import type { AddressPolicyOptions } from '#network/egress/index.ts'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { startControllers } from '#controllers/index.ts'
import { measuredStore } from '#store/measured/index.ts'
import { bucketNumberOf, openHostStore } from '#store/host/index.ts'
import { Seal, type Store } from '#store/index.ts'
import type { KubeClient } from '#client/index.ts'
import { createMetrics, type Logger, type Metrics } from '#telemetry/index.ts'
import { createMembers, createVirtualApi, frontProxyFromHost, requireObjectBytes } from '#virtualapi/index.ts'
import { openServerStore, type ServerStoreSettings } from './server-store.ts'
import { openAuditLog, type AuditLogOptions } from './audit-log.ts'
import { followSignIn } from './sign-in.ts'
import { register, serviceHosts } from './api-service.ts'
import { openConsole, type ConsoleSettings } from './console.ts'
import { certificateExpiry, keepRenewed } from './keep-renewed.ts'
import type { Registration } from './registration.ts'
import { createHostAccess } from './host-access.ts'
import { createHostUsers } from './host-users.ts'
import { installationKeys, publishAddress, type Host } from './host-installation.ts'
import { openUsageHistory } from './usage-history.ts'
import { metricsClientRenewal } from './metrics-client.ts'
import { createReplica, type Siblings } from './replica.ts'
import { servingCertificateRenewal } from './serving-certificate.ts'

export interface ApiserverOptions {
  readonly host: Host
  readonly port: number
  readonly bindAddress: string
  /** Address at which the host's kube-apiserver and pods in members reach us. */
  readonly advertiseAddress: string
  /** Port of the published address; default: the one we listen on. */
  readonly advertisePort?: number
  /** Port for the other replicas. Default: any free one. */
  readonly peerPort?: number
  /** Address at which the other replicas reach us. */
  readonly peerAddress: string
  /** The other workers that listen on the same port; absent: there are none. */
  readonly siblings?: Siblings
  /** The objects applied in the host so that its aggregator finds us. */
  readonly register: Registration
  /** The audit log of the installation; absent: none. */
  readonly audit?: AuditLogOptions
  /** File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1); absent: no identity provider is trusted. */
  readonly authenticationConfig?: string
  /** Absent: the logical clusters are Records in the host. */
  readonly serverStore?: ServerStoreSettings
  /** Storage limit of one logical cluster, in bytes; absent: no limit. */
  readonly storageBytes?: number
  /** Storage limit of all logical clusters together, in bytes; absent: no limit. */
  readonly totalStorageBytes?: number
  /** Lifetime of an Event after its last write, in milliseconds. Default one hour. */
  readonly eventTtlMs?: number
  /** False: logical clusters do not serve apis.kcp.io. Default true. */
  readonly sharedApis?: boolean
  /** Milliseconds between two writes of the rows of usage; 0: none are kept. Default a minute. */
  readonly usageEveryMs?: number
  /** The addresses at which tenants' webhooks may be called; absent: public addresses. */
  readonly egress?: AddressPolicyOptions
  /** Name of the Secret in the installation's namespace for Prometheus' client certificate; absent: no such Secret. */
  readonly metricsClientSecret?: string
  /** Absent: no console is served. */
  readonly console?: ConsoleSettings
  /** Default: metrics of its own. */
  readonly metrics?: Metrics
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface RunningApiserver extends AsyncDisposable {
  readonly port: number
  /** Name of its Lease among replicas, and of its socket among workers. */
  readonly name: string
  /** Why this process is not ready; undefined if it is. */
  readonly notReady: string | undefined
  /** Rejects when a part of the server failed for good. */
  readonly failed: Promise<never>
  /**
   * Hands the logical clusters over to the other replicas, if there are any, and forwards requests to them for some
   * seconds, until clients know that this one stops. Call it before anything else ends.
   */
  leave(): Promise<void>
}

/**
 * Milliseconds for which a server that has left forwards requests: clients do not see changed endpoints and readiness
 * at once.
 */
const passOnMs = 4000

/** Starts the server; resolves once it serves and is registered. */
export async function startApiserver(options: ApiserverOptions): Promise<RunningApiserver> {
  const { host, bindAddress, advertiseAddress, advertisePort = options.port, siblings, log, signal } = options
  const { client, transport } = host
  await using stack = new AsyncDisposableStack()
  const { metrics = createMetrics(), usageEveryMs = 60_000 } = options
  const audit = options.audit && stack.use(await openAuditLog(options.audit, { metrics, log, signal }))
  const signIn = await followSignIn(options.authenticationConfig, { log, signal })
  await ensureCrds(client, { crds: [...kcpCrds(), ...storageCrds()], signal })
  const { pki, sealKey, otherSealKeys } = await installationKeys(client, signal)
  const frontProxy = stack.use(frontProxyFromHost({ client, log, signal }))
  await frontProxy.synced(signal)
  const replica = stack.use(await createReplica({ client, ...(siblings && { siblings }), log, metrics, signal }))
  const parts = { client, replica, sealKey, otherSealKeys, authority: pki.clientCa }
  const store = stack.use(
    options.serverStore === undefined
      ? await openRecords(options, parts, stack)
      : await openInServer(options, options.serverStore, parts),
  )
  const api = stack.use(
    await createVirtualApi({
      store: measuredStore(store, { name: options.serverStore?.kind ?? 'host', metrics }),
      pki,
      ...(advertisePort !== 0 && { address: { host: advertiseAddress, port: advertisePort } }),
      frontProxy: () => frontProxy.current(),
      askHost: createHostAccess(client),
      sharing: replica,
      ...(siblings && { othersNotReady: () => siblings.notReady }),
      ...(usageEveryMs > 0 && {
        usage: { everyMs: usageEveryMs, history: (client) => openUsageHistory({ client, writer: replica.name }) },
      }),
      members: ({ dialer }) => createMembers({ transport, dialer, log, signal }),
      ...(audit && { audit }),
      ...(signIn && { signIn }),
      ...(options.storageBytes !== undefined && { storageBytes: options.storageBytes }),
      sharedApis: options.sharedApis ?? true,
      ...(options.eventTtlMs !== undefined && { eventTtlMs: options.eventTtlMs }),
      ...(options.egress !== undefined && { egress: options.egress }),
      log,
      metrics,
      signal,
    }),
  )
  await api.follow(client)
  const hosts = [...new Set([advertiseAddress, bindAddress])].filter((name) => name !== '0.0.0.0' && name !== '::')
  const servingHosts = [...hosts, ...serviceHosts]
  if (options.console !== undefined) {
    const hostUsers = createHostUsers(client)
    stack.use(openConsole(api, options.console, { client, hosts: servingHosts, hostUsers, host: transport }))
  }
  const peers = { bindAddress, port: options.peerPort ?? 0, address: options.peerAddress }
  const membership = stack.use(await replica.join(api, peers))
  const current = await pki.servingCertificate(servingHosts)
  const isShared = siblings !== undefined
  const listener = stack.use(await api.listen({ host: bindAddress, port: options.port, isShared, ...current }))
  const tellExpiry = certificateExpiry(metrics)
  tellExpiry('serving-authority', pki.servingCa)
  tellExpiry('client-authority', pki.clientCa)
  const serving = servingCertificateRenewal({ pki, hosts: servingHosts, listener, current, tellExpiry, log })
  const renewals = [serving, membership]
  if (options.metricsClientSecret !== undefined) {
    const scraper = metricsClientRenewal({ client, name: options.metricsClientSecret, pki, tellExpiry, signal })
    await scraper.renew().catch((error: unknown) => log.warn('Prometheus has no new client certificate yet', { error }))
    renewals.push(scraper)
  }
  stack.use(keepRenewed(renewals, { log }))
  const [consoleUrl] = options.console?.origins ?? []
  const url = `https://${advertiseAddress}:${options.advertisePort ?? listener.port}`
  stack.use(
    await startControllers({
      // The name of the program that does this work in a cluster: tools that ignore its fields ignore these, too.
      cluster: (name) => api.client(name as ClusterName, { userAgent: 'kube-controller-manager' }),
      rootCa: pki.servingCa,
      signClientRequest: ({ clusterId, ...request }) =>
        pki.signClientRequest({ ...request, realm: clusterId as ClusterId }),
      graph: api.graph,
      ...(options.sharedApis !== false && { sharing: api.sharing }),
      viewUrl: (cluster, name) => `${url}/services/apiexport/${cluster}/${name}`,
      log,
      signal,
    }),
  )
  await publishAddress(
    client,
    {
      url,
      ...(consoleUrl !== undefined && { consoleUrl }),
      ...(options.serverStore !== undefined && { store: options.serverStore.kind }),
    },
    signal,
  )
  await register(
    client,
    options.register,
    { address: advertiseAddress, port: listener.port, ca: pki.servingCa },
    signal,
  )
  const owned = stack.move()
  return {
    port: listener.port,
    name: replica.name,
    get notReady() {
      return api.notReady
    },
    failed: api.broken,
    async leave() {
      api.retire()
      if (await replica.leave()) await sleep(passOnMs, signal).catch(() => undefined)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

interface StoreParts {
  readonly client: KubeClient
  readonly replica: Awaited<ReturnType<typeof createReplica>>
  readonly sealKey: Uint8Array
  readonly otherSealKeys: readonly Uint8Array[]
  readonly authority: string
}

/** The store in the host. Renewals that are only in memory go with the logical clusters that change hands. */
async function openRecords(
  { totalStorageBytes, log, signal }: ApiserverOptions,
  { client, replica, sealKey, otherSealKeys }: StoreParts,
  stack: AsyncDisposableStack,
): Promise<Store> {
  const store = await openHostStore({
    client,
    sealKey,
    otherSealKeys,
    requireValue: requireObjectBytes,
    ...(totalStorageBytes !== undefined && { maxBytes: totalStorageBytes }),
    mayWriteForMs: (bucket) => replica.mayWriteForMs(bucket),
    onProblem: (message, error) => log.warn(message, { error }),
    signal,
  })
  replica.beforeLeaving((isMoved, limit) => store.saveRenewals(isMoved, { signal: limit }))
  const forget = (isMoved: (id: ClusterId) => boolean): void => store.forgetRenewals(isMoved)
  stack.defer(replica.ownership.follow({ gained: forget, lost: forget }))
  return store
}

/** The store in an etcd or a PostgreSQL that all replicas use. */
async function openInServer(
  { log, signal }: ApiserverOptions,
  settings: ServerStoreSettings,
  { replica, sealKey, otherSealKeys, authority }: StoreParts,
): Promise<Store> {
  const seal = new Seal(sealKey, { otherKeys: otherSealKeys })
  const mayWriteForMs = (cluster: ClusterId): number => replica.mayWriteForMs(bucketNumberOf(cluster))
  return await openServerStore(settings, { authority, seal, mayWriteForMs, log, signal })
}
