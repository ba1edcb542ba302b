// The gateway of a member: passes connections of the member's pods to Services in other members, and connections from
// other members to Services in this one.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { abortable, sleep, systemClock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'
import { AcceptCheck } from './accept-check.ts'
import { AdoptedNamespaces } from './adopted-namespaces.ts'
import { ConnectionLimits, type Bounds } from './connection-limits.ts'
import { Connections } from './connections.ts'
import { createGatewayMetrics } from './gateway-metrics.ts'
import { listenForHealth } from '#network/health/index.ts'
import { parseIdentity, type Identity } from './identity.ts'
import { Listeners } from './listeners.ts'
import { findPods, followMember } from './member-view.ts'
import { PeerDialer } from './peer-dialer.ts'
import { listenForPeers, refuse, type PeerServer } from './peer-server.ts'
import { Peers } from './peers.ts'
import { PodAddresses, podIn, type PodRecord, type TenantPod } from './pod-addresses.ts'
import { ServiceEndpoints } from './service-endpoints.ts'
import { sliceIn, type LocalSlice, type RemoteSlice, type SliceRecord } from './slice-record.ts'

export interface GatewayOptions extends Bounds {
  /** The client of the member. */
  readonly client: KubeClient
  /** The namespace with the gateway's Secret and its peers. */
  readonly namespace: string
  /** The port for gateways of other members; 0 for any free port. */
  readonly port: number
  readonly healthPort: number
  readonly idleMs: number
  readonly log: Logger
  readonly metrics: Metrics
}

export interface Gateway extends AsyncDisposable {
  /** Resolves when the gateway takes connections. Rejects with signal.reason, or if a port cannot be used. */
  ready(signal: AbortSignal): Promise<void>
  readonly port: number | undefined
  readonly healthPort: number
  /**
   * Reports that the gateway is not ready. For `leaveMs` it still takes new connections, because the nodes need time to
   * learn that it is not ready; after that it takes none. Resolves when the open connections have ended, or were reset
   * after `graceMs`.
   */
  drain(times: { readonly leaveMs: number; readonly graceMs: number }): Promise<void>
}

const sweepMs = 60_000
const findMs = 5000
/** While the gateway starts: milliseconds between two checks whether it is ready. */
const readyCheckMs = 50

/** Starts the gateway. Rejects if the health port cannot be used. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const gateway = new RunningGateway(options)
  await gateway.listenForHealth()
  return gateway
}

class RunningGateway implements Gateway {
  readonly #options: GatewayOptions
  readonly #life = new AbortController()
  readonly #metrics: ReturnType<typeof createGatewayMetrics>
  readonly #peers = new Peers()
  readonly #namespaces = new AdoptedNamespaces()
  readonly #pods: PodAddresses
  readonly #dialer = new PeerDialer()
  readonly #endpoints: ServiceEndpoints
  readonly #limits: ConnectionLimits
  readonly #acceptCheck: AcceptCheck
  readonly #connections: Connections
  readonly #listeners: Listeners
  readonly #view: ReturnType<typeof followMember>
  readonly #sweeper: NodeJS.Timeout
  readonly #serving = Promise.withResolvers<PeerServer>()
  #server: PeerServer | undefined
  #health: Awaited<ReturnType<typeof listenForHealth>> | undefined
  #identity: Identity | undefined
  /** Whether the gateway has been ready: a listener that fails later does not take the others out of service. */
  #wasReady = false
  #isLeaving = false
  #isStopping = false

  constructor(options: GatewayOptions) {
    this.#options = options
    const { client, namespace, log, idleMs } = options
    const { signal } = this.#life
    const metrics = createGatewayMetrics(options.metrics)
    this.#metrics = metrics
    const pods = new PodAddresses({
      find: async (address) => {
        const found = await findPods(client, address, AbortSignal.any([signal, AbortSignal.timeout(findMs)]))
        return found
          .map((pod) => podIn(pod, this.#namespaces.usualNameOf(pod.namespace) ?? ''))
          .find((pod) => pod !== undefined)
      },
    })
    this.#pods = pods
    this.#endpoints = new ServiceEndpoints({
      clock: systemClock,
      random: Math.random,
      isOfPod: (address, pod) => pods.isOfPod(address, pod),
    })
    this.#limits = new ConnectionLimits(options)
    this.#acceptCheck = new AcceptCheck({ port: () => this.#server?.port, identity: () => this.#identity })
    this.#connections = new Connections({
      limits: this.#limits,
      pods,
      peers: this.#peers,
      dialer: this.#dialer,
      endpoints: this.#endpoints,
      namespaces: this.#namespaces,
      metrics,
      log,
      idleMs,
    })
    this.#listeners = new Listeners({
      onConnection: (client, route) => void this.#connections.outgoing(client, route),
      log,
    })
    this.#serving.promise.catch(() => undefined)
    this.#view = followMember({
      client,
      namespace,
      log,
      signal,
      onSecret: (secret) => this.#useSecret(secret),
      onPeer: (key, before, after) => {
        this.#peers.set(key, after)
        if (before !== undefined && this.#peers.ofMember(before.member) === undefined)
          this.#connections.resetOf(before.member)
      },
      onNamespaces: (configMap) => this.#namespaces.set(configMap),
      onSlice: this.#namespaces.admitting<SliceRecord, SliceRecord>(sliceIn, (key, before, after) => {
        this.#listeners.set(key, ifRemote(before), ifRemote(after))
        this.#endpoints.set(key, ifLocal(before), ifLocal(after))
      }),
      onPod: this.#namespaces.admitting<PodRecord, TenantPod>(podIn, (_key, before, after) => pods.set(before, after)),
    })
    this.#sweeper = setInterval(() => this.#endpoints.sweep(), sweepMs).unref()
  }

  get port(): number | undefined {
    return this.#server?.port
  }

  get healthPort(): number {
    return this.#health?.port ?? 0
  }

  async listenForHealth(): Promise<void> {
    this.#health = await listenForHealth({
      port: this.#options.healthPort,
      notReady: () => this.#notReady(),
      metrics: this.#options.metrics,
      beforeScrape: () => this.#metrics.flush(),
    })
  }

  async ready(signal: AbortSignal): Promise<void> {
    await abortable(this.#serving.promise, signal)
    await this.#view.synced(signal)
    while (this.#notReady() !== undefined) await sleep(readyCheckMs, signal)
  }

  async drain({ leaveMs, graceMs }: { readonly leaveMs: number; readonly graceMs: number }): Promise<void> {
    this.#isLeaving = true
    await sleep(leaveMs, this.#life.signal)
    this.#isStopping = true
    this.#listeners.close()
    this.#server?.close()
    const grace = sleep(graceMs, this.#life.signal).then(() => this.#connections.reset())
    grace.catch(() => undefined)
    await this.#connections.drained()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#sweeper)
    this.#acceptCheck[Symbol.dispose]()
    this.#listeners.close()
    this.#server?.close()
    this.#connections.reset()
    this.#life.abort(new DOMException('the gateway was closed', 'AbortError'))
    this.#serving.reject(this.#life.signal.reason as Error)
    await this.#view[Symbol.asyncDispose]()
    await this.#health?.[Symbol.asyncDispose]()
  }

  #notReady(): string | undefined {
    if (this.#isLeaving || this.#isStopping) return 'it is stopping'
    if (this.#wasReady) return this.#takesNone()
    if (!this.#view.hasSynced) return 'its lists are not complete yet'
    if (this.#server === undefined) return 'it has no identity yet'
    if (!this.#listeners.isComplete) return 'it does not listen on every port yet'
    this.#wasReady = true
    return this.#takesNone()
  }

  /** Why the gateway takes no connections although it listens; undefined if it takes them. */
  #takesNone(): string | undefined {
    if (this.#limits.isFull) return 'as many connections are open as it may have'
    if (!this.#acceptCheck.takesConnections) return 'it does not answer at its own port'
    return undefined
  }

  #useSecret(secret: KubeObject | undefined): void {
    const { log } = this.#options
    let identity: Identity
    try {
      if (secret === undefined) throw new Error('the Secret is gone')
      identity = parseIdentity(secret)
    } catch (error) {
      log.error('the identity of this gateway cannot be read; the former one stays', { error })
      return
    }
    this.#dialer.use(identity.context)
    const isFirst = this.#identity === undefined
    this.#identity = identity
    if (!isFirst) {
      log.info('this gateway has a new identity')
      this.#server?.use(identity)
    } else this.#listenForPeers().then(this.#serving.resolve, this.#serving.reject)
  }

  async #listenForPeers(): Promise<PeerServer> {
    const { port } = this.#options
    const identity = this.#identity as Identity
    const server = await listenForPeers({
      identity,
      port,
      peerOf: (fingerprint) => this.#peers.ofCertificate(fingerprint),
      onRequest: (leg, peer, target) => {
        if (this.#isStopping) refuse(leg, 'stopping')
        else void this.#connections.incoming(leg, peer, target)
      },
      onRefused: (reason) => this.#metrics.refused('incoming', reason),
    })
    if (this.#isStopping) server.close()
    // The identity may have changed meanwhile.
    if (this.#identity !== identity) server.use(this.#identity as Identity)
    this.#server = server
    return server
  }
}

function ifRemote(slice: SliceRecord | undefined): RemoteSlice | undefined {
  return slice?.type === 'remote' ? slice : undefined
}

function ifLocal(slice: SliceRecord | undefined): LocalSlice | undefined {
  return slice?.type === 'local' ? slice : undefined
}
