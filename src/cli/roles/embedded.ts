// `kcp start`: store, server, controllers and operator in one process. No Kubernetes needed.
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readdir, stat } from 'node:fs/promises'
import { createServer as createTcpServer } from 'node:net'
import { dirname, join } from 'node:path'
import { rootClusterName, type ClusterId, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { createClient, httpTransport, type KubeClient } from '#client/index.ts'
import { remoteDialer, type MemberDialer } from '#client/member/index.ts'
import { startControllers } from '#controllers/index.ts'
import { kcpCrds, systemNamespace, type CustomResourceDefinition, type VolumeMoveLimits } from '#crds/index.ts'
import type { AddressPolicyOptions } from '#network/egress/index.ts'
import { clusterProfilesController, operatorMetrics, startOperator, type RunningOperator } from '#operator/index.ts'
import { measuredStore } from '#store/measured/index.ts'
import type { Store } from '#store/index.ts'
import { openSqliteStore, readOrCreateSeal } from '#store/sqlite/index.ts'
import { createMetrics, type Logger, type Metrics } from '#telemetry/index.ts'
import {
  certificateBackdatingMs,
  createMembers,
  createVirtualApi,
  hasPki,
  openPki,
  renewedClientCertificate,
  rootCluster,
  type Pki,
  type VirtualApi,
  type VirtualApiOptions,
} from '#virtualapi/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'
import { adminKubeconfigRenewal } from './admin-kubeconfig.ts'
import { openAuditLog, type AuditLogOptions } from './audit-log.ts'
import { followSignIn } from './sign-in.ts'
import { certificateExpiry, keepRenewed, type Renewal } from './keep-renewed.ts'
import { openServerStore, type ServerStoreSettings } from './server-store.ts'
import { isMarked, mark, markNames, requireNoMigration } from './store-marks.ts'
import { openConsole, type ConsoleSettings } from './console.ts'
import { openHost } from './host-installation.ts'
import { memberControllers } from './member-controllers.ts'
import { metricsClientRenewal } from './metrics-client.ts'
import { openUsageHistory } from './usage-history.ts'
import { servingCertificateRenewal } from './serving-certificate.ts'

export interface EmbeddedOptions {
  readonly rootDir: string
  readonly port: number
  /** Address to listen on. */
  readonly bindAddress: string
  /** Host name or address at which pods in members reach us; it is in the certificate. */
  readonly advertiseAddress: string
  /** The audit log of the installation; absent: none. */
  readonly audit?: AuditLogOptions
  /** File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1); absent: no identity provider is trusted. */
  readonly authenticationConfig?: string
  /** Absent: the store is a SQLite file in the directory. */
  readonly serverStore?: ServerStoreSettings
  /** The storage quota of each logical cluster, in bytes; absent: no limit. */
  readonly storageBytes?: number
  /** Lifetime of an Event after its last write, in milliseconds. Default one hour. */
  readonly eventTtlMs?: number
  /** False: logical clusters do not serve apis.kcp.io. Default true. */
  readonly sharedApis?: boolean
  /** Milliseconds between two writes of the rows of usage; 0: none are kept. Default a minute. */
  readonly usageEveryMs?: number
  /** The addresses at which tenants' webhooks may be called; absent: public addresses. */
  readonly egress?: AddressPolicyOptions
  /**
   * Name of the Secret for Prometheus' client certificate, in the cluster of KUBECONFIG or of the pod we run in;
   * absent: no such Secret.
   */
  readonly metricsClientSecret?: string
  /** Absent: no console is served. */
  readonly console?: ConsoleSettings
  /** Image of kcp for gateways in members. Default: the image of this version. */
  readonly gatewayImage?: string
  /** The directory below which SnapshotStores with `file` are. Absent: there is none. */
  readonly snapshotDirectory?: string
  /** How many volumes are copied at a time. */
  readonly volumeMoves?: VolumeMoveLimits
  /** Shows members as ClusterProfiles in namespace kcp-system of logical cluster `root`. Default false. */
  readonly clusterProfiles?: boolean
  /** Present: another process is the operator. `notReady`: why it is not ready; undefined if it is. */
  readonly operatorElsewhere?: { readonly notReady: string | undefined }
  /** Default: metrics of its own. */
  readonly metrics?: Metrics
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface Embedded extends AsyncDisposable {
  readonly adminKubeconfig: string
  readonly port: number
  /** Why the server is not ready; undefined if it is. */
  readonly notReady: string | undefined
  /** Rejects when a part of the program failed for good. */
  readonly failed: Promise<never>
}

/**
 * Starts everything; resolves once it is ready and admin.kubeconfig is written. Rejects with ExitError, having
 * changed nothing, if the port, the directory or the data cannot be used.
 */
export async function startEmbedded(given: EmbeddedOptions): Promise<Embedded> {
  const options = { metrics: createMetrics(), ...given }
  const { rootDir, log, metrics, signal, bindAddress } = options
  await requirePort(options)
  const { hasKeysOnly } = await requireDirectory(rootDir)
  // Damaged keys are reported before the database is opened, because opening writes.
  const keptPki = hasPki(rootDir) ? await openPki(rootDir) : undefined
  await using stack = new AsyncDisposableStack()
  const audit = options.audit && stack.use(await openAuditLog(options.audit, { metrics, log, signal }))
  const signIn = await followSignIn(options.authenticationConfig, { log, signal })
  const isNew = keptPki === undefined || hasKeysOnly
  requireNoMigration(rootDir)
  if (options.serverStore !== undefined) requireNoDatabase(rootDir, options.serverStore)
  const store = stack.use(
    options.serverStore === undefined
      ? await openStore(rootDir, { mayBeNew: isNew })
      : await openInServer(options, options.serverStore),
  )
  if (options.serverStore === undefined) requireNoMigration(rootDir)
  const pki = keptPki ?? (await openPki(rootDir))
  const api = stack.use(await createServer(options, { store, pki, audit, signIn }))
  const rootClient = api.client(rootClusterName)
  await putCrds(rootClient, kcpCrds(), signal)
  await api.follow(rootClient)
  const hosts = [options.advertiseAddress, bindAddress].filter((host) => host !== '0.0.0.0' && host !== '::')
  const current = await pki.servingCertificate(hosts)
  if (options.console !== undefined) stack.use(openConsole(api, options.console, { client: rootClient, hosts }))
  const listener = stack.use(await api.listen({ host: bindAddress, port: options.port, ...current }))
  const { port } = listener
  stack.use(await startClusterControllers(options, { api, pki, port }))
  const operator =
    options.operatorElsewhere === undefined
      ? stack.use(await startMemberOperator(options, { pki, port, reach: loopbackOf(api) }))
      : undefined
  const adminKubeconfig = join(rootDir, 'admin.kubeconfig')
  const tellExpiry = certificateExpiry(metrics)
  tellExpiry('serving-authority', pki.servingCa)
  tellExpiry('client-authority', pki.clientCa)
  const renewals = [
    servingCertificateRenewal({ pki, hosts, listener, current, tellExpiry, log }),
    await openAdminKubeconfig(adminKubeconfig, { pki, server: `${localUrl(port)}/clusters/root`, log }),
  ]
  if (options.metricsClientSecret !== undefined) {
    const { client } = stack.use(await openHost(undefined))
    renewals.push(await openMetricsClient(options.metricsClientSecret, { client, pki, tellExpiry, log, signal }))
  }
  stack.use(keepRenewed(renewals, { log }))
  const owned = stack.move()
  return {
    adminKubeconfig,
    port,
    get notReady() {
      return api.notReady
    },
    failed: firstFailure(...(operator === undefined ? [] : [operator.done]), api.broken),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/**
 * Starts the operator for a server that runs in another process of this machine, over its directory. Resolves once all
 * controllers run.
 */
export async function startOperatorBeside(given: EmbeddedOptions): Promise<RunningOperator> {
  const options = { metrics: createMetrics(), ...given }
  const { rootDir, port, bindAddress } = options
  const pki = await openPki(rootDir)
  const credentials = renewedClientCertificate(pki, {
    commonName: 'kcp:operator',
    organizations: ['kcp:system'],
    realm: 'installation',
    days: certificateDays,
  })
  await using stack = new AsyncDisposableStack()
  const isEverywhere = bindAddress === '0.0.0.0' || bindAddress === '::'
  const host = bindAddress.includes(':') ? `[${bindAddress}]` : bindAddress
  const server = isEverywhere ? localUrl(port) : `https://${host}:${port}`
  const transport = stack.use(
    httpTransport({
      refreshAfterMs: credentialsAgainMs,
      async endpoint() {
        const { certificate: cert, key } = await credentials()
        return { server, ca: pki.servingCa, cert, key }
      },
    }),
  )
  const client = (name: ClusterName): KubeClient => createClient(transport, { basePath: `/clusters/${name}` })
  const reach = { client, dialer: remoteDialer(transport) }
  const operator = stack.use(await startMemberOperator(options, { pki, port, reach }))
  const owned = stack.move()
  return { done: operator.done, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Lifetime of the operator's certificate, and milliseconds between two checks whether it must be renewed. */
const [certificateDays, credentialsAgainMs] = [365, 5 * 60_000]

type Settings = EmbeddedOptions & { readonly metrics: Metrics }

interface Data {
  readonly store: Store
  readonly pki: Pki
  readonly audit: VirtualApiOptions['audit']
  readonly signIn: VirtualApiOptions['signIn']
}

/** The API server over the store of the directory. */
async function createServer(options: Settings, { store, pki, audit, signIn }: Data): Promise<VirtualApi> {
  const { advertiseAddress, port, storageBytes, eventTtlMs, sharedApis = true, egress, log, metrics, signal } = options
  const { usageEveryMs = 60_000 } = options
  const { validFromDate } = new X509Certificate(pki.clientCa)
  return await createVirtualApi({
    store: measuredStore(store, { name: options.serverStore?.kind ?? 'sqlite', metrics }),
    pki,
    // A port that the system chooses is not known yet.
    ...(port !== 0 && { address: { host: advertiseAddress, port } }),
    root: rootCluster({
      instanceId: store.instanceId,
      creationTimestamp: timestamp(validFromDate.getTime() + certificateBackdatingMs),
    }),
    ...(audit && { audit }),
    ...(signIn && { signIn }),
    ...(storageBytes !== undefined && { storageBytes }),
    sharedApis,
    ...(usageEveryMs > 0 && {
      usage: {
        everyMs: usageEveryMs,
        history: (client) => openUsageHistory({ client, writer: 'server', makesNamespace: true }),
      },
    }),
    ...(eventTtlMs !== undefined && { eventTtlMs }),
    ...(egress !== undefined && { egress }),
    log,
    metrics,
    signal,
    ...(options.operatorElsewhere && { othersNotReady: () => options.operatorElsewhere?.notReady }),
    members: ({ loopback, dialer }) =>
      createMembers({ transport: loopback, basePath: '/clusters/root', dialer, log, signal }),
  })
}

interface Server {
  readonly api: VirtualApi
  readonly pki: Pki
}

/** The controllers inside logical clusters. */
async function startClusterControllers(
  { log, signal, sharedApis = true }: Settings,
  { api, pki, port }: Server & { readonly port: number },
): ReturnType<typeof startControllers> {
  return await startControllers({
    // The name of the program that does this work in a cluster: tools that ignore its fields ignore these too.
    cluster: (name) => api.client(name as ClusterName, { userAgent: 'kube-controller-manager' }),
    rootCa: pki.servingCa,
    signClientRequest: ({ clusterId, ...request }) =>
      pki.signClientRequest({ ...request, realm: clusterId as ClusterId }),
    graph: api.graph,
    ...(sharedApis && { sharing: api.sharing }),
    viewUrl: (cluster, name) => `${localUrl(port)}/services/apiexport/${cluster}/${name}`,
    log,
    signal,
  })
}

/** How the operator reaches logical clusters and members in pull mode. */
interface Reach {
  readonly client: (cluster: ClusterName) => KubeClient
  readonly dialer: MemberDialer
}

function loopbackOf(api: VirtualApi): Reach {
  return { client: (cluster) => api.client(cluster), dialer: api.dialer }
}

/** The operator of logical clusters and members. */
async function startMemberOperator(
  {
    advertiseAddress,
    gatewayImage,
    snapshotDirectory,
    volumeMoves,
    clusterProfiles = false,
    usageEveryMs = 60_000,
    log,
    metrics,
    signal,
  }: Settings,
  { pki, port, reach }: { readonly pki: Pki; readonly port: number; readonly reach: Reach },
): ReturnType<typeof startOperator> {
  return await startOperator({
    clusters: reach.client(rootClusterName),
    virtual: (basePath) => reach.client(basePath.replace('/clusters/', '') as ClusterName),
    urls: (name) => ({
      url: `${localUrl(port)}/clusters/${name}`,
      directURL: `https://${advertiseAddress}:${port}/clusters/${name}`,
    }),
    issuer: pki,
    dialer: reach.dialer,
    ...(snapshotDirectory !== undefined && { snapshotDirectory }),
    controllers: [
      ...memberControllers({
        advertise: { host: advertiseAddress, port },
        ...(usageEveryMs > 0 && {
          usageHistory: (client) => openUsageHistory({ client, writer: 'operator', makesNamespace: true }),
        }),
        ...(gatewayImage !== undefined && { gatewayImage }),
        ...(volumeMoves !== undefined && { volumeMoves }),
      }),
      ...(clusterProfiles ? [clusterProfilesController({ namespace: systemNamespace, makesNamespace: true })] : []),
    ],
    metrics: operatorMetrics(metrics),
    log,
    signal,
  })
}

function localUrl(port: number): string {
  return `https://127.0.0.1:${port}`
}

/** Writes admin.kubeconfig. Returns its renewal. */
async function openAdminKubeconfig(
  file: string,
  { pki, server, log }: { readonly pki: Pki; readonly server: string; readonly log: Logger },
): Promise<Renewal> {
  const renewal = adminKubeconfigRenewal({ pki, file, server })
  await renewal.renew().catch((error: unknown) => {
    // The file of the last start is valid for a year, and a server whose disk is full can still be read.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC' || !existsSync(file)) throw error
    log.warn('the disk is full: admin.kubeconfig is that of the last start', { error })
  })
  return renewal
}

/** Writes the client certificate of Prometheus into the Secret. Returns its renewal. */
async function openMetricsClient(
  name: string,
  { log, ...rest }: Omit<Parameters<typeof metricsClientRenewal>[0], 'name'> & { readonly log: Logger },
): Promise<Renewal> {
  const renewal = metricsClientRenewal({ ...rest, name })
  await renewal.renew().catch((error: unknown) => log.warn('Prometheus has no new client certificate yet', { error }))
  return renewal
}

/** Rejects with the error of the first promise that rejects. */
function firstFailure(...parts: readonly Promise<unknown>[]): Promise<never> {
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined)
  for (const part of parts) part.catch((error: unknown) => failed.reject(error))
  return failed.promise
}

/** Refuses a port in use before anything is changed. */
async function requirePort({ port, bindAddress }: EmbeddedOptions): Promise<void> {
  const probe = createTcpServer()
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen(port, bindAddress, () => probe.close(() => resolve()))
    })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    const why = code === 'EADDRINUSE' ? 'it is in use' : messageOf(cause)
    const flag = code === 'EADDRINUSE' || code === 'EACCES' ? '--port' : '--bind-address'
    throw new ExitError(`cannot listen on ${bindAddress}:${port}: ${why}; choose another with ${flag}`, { cause })
  }
}

/**
 * Refuses anything but an empty directory, one of ours, one with nothing but keys, or a path where one can be created.
 */
async function requireDirectory(dir: string): Promise<{ readonly hasKeysOnly: boolean }> {
  const found = await stat(dir).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new ExitError(`cannot read "${dir}": ${messageOf(error)}`)
  })
  if (found === undefined) {
    await makeDirectory(dir).catch((error: unknown) => {
      throw new ExitError(`cannot create "${dir}": ${messageOf(error)}`)
    })
    return { hasKeysOnly: false }
  }
  if (!found.isDirectory()) throw new ExitError(`"${dir}" is not a directory`)
  try {
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK)
    const entries = await readdir(dir)
    const hasKeysOnly = entries.length > 0 && entries.every((entry) => keyEntries.has(entry))
    if (entries.length > 0 && !hasKeysOnly && !(await isOurs(dir, entries)))
      throw new ExitError(`"${dir}" has other files in it and no data of kcp: choose an empty or a new directory`)
    return { hasKeysOnly }
  } catch (error) {
    throw error instanceof ExitError ? error : new ExitError(`cannot use "${dir}": ${messageOf(error)}`)
  }
}

/**
 * Creates the directory and its parents. Node's recursive mkdir never returns on a file system without directories,
 * such as /proc.
 */
async function makeDirectory(dir: string): Promise<void> {
  const parent = dirname(dir)
  if (parent !== dir && !existsSync(parent)) await makeDirectory(parent)
  await mkdir(dir, { mode: 0o700 })
}

/** The keys of an installation, which an admin puts into a new directory before a backup is restored there. */
const keyEntries: ReadonlySet<string> = new Set(['pki', 'seal.key'])

/** True if an earlier start created the entries; a start that was killed early may have left only an empty folder. */
async function isOurs(dir: string, entries: readonly string[]): Promise<boolean> {
  if (!entries.includes('data')) return false
  const data = await readdir(join(dir, 'data'))
  return ['kcp.db', ...markNames].some((name) => data.includes(name)) || (data.length === 0 && entries.length === 1)
}

/** Throws ExitError if the directory has an embedded database, whose logical clusters would be missing in a server. */
function requireNoDatabase(rootDir: string, { kind }: ServerStoreSettings): void {
  if (!existsSync(join(rootDir, 'data', 'kcp.db'))) return
  throw new ExitError(
    `"${rootDir}" has an embedded database: take it there with kcp migrate-store --root-dir ${rootDir} --store ${kind} and the same flags`,
  )
}

/** Opens the store in a server, and marks the directory as that of an installation whose data are there. */
async function openInServer({ rootDir, log, signal }: EmbeddedOptions, settings: ServerStoreSettings): Promise<Store> {
  const { clientCa: authority } = await openPki(rootDir)
  let seal: ReturnType<typeof readOrCreateSeal>
  try {
    seal = readOrCreateSeal(join(rootDir, 'seal.key'))
  } catch (error) {
    throw new ExitError(messageOf(error), { cause: error })
  }
  const mustExist = await isMarked(rootDir, settings)
  const store = await openServerStore(settings, { authority, seal, mustExist, log, signal })
  try {
    // A migration may have begun or ended meanwhile.
    requireNoMigration(rootDir)
    requireNoDatabase(rootDir, settings)
    await mark(rootDir, settings)
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
  return store
}

async function openStore(rootDir: string, { mayBeNew }: { mayBeNew: boolean }): Promise<Store> {
  try {
    return await openSqliteStore({
      file: join(rootDir, 'data', 'kcp.db'),
      mayBeNew,
      // The key is not in `data`: a copy of that directory does not contain the key to its Secrets.
      sealKeyFile: join(rootDir, 'seal.key'),
    })
  } catch (error) {
    throw new ExitError(messageOf(error), { cause: error })
  }
}

const crdResource = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const

/** Creates our kinds in the logical cluster `root`; updates one only if a new release changed it. */
async function putCrds(
  client: KubeClient,
  crds: readonly CustomResourceDefinition[],
  signal: AbortSignal,
): Promise<void> {
  for (const crd of crds) {
    const name = crd.metadata.name ?? ''
    const current = await client.tryGet<CustomResourceDefinition>(crdResource, { name }, { signal })
    try {
      if (current === undefined) await client.create(crdResource, crd, { signal })
      else await client.update(crdResource, { ...current, spec: crd.spec }, { signal })
    } catch (error) {
      if (!isStatusError(error, 'AlreadyExists')) throw error
    }
  }
}
