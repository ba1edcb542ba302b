// The connections through the gateway: each is admitted, joined with its Service, counted, and ended when the gateway
// ends.
import type { Socket } from 'node:net'
import type { Logger } from '#telemetry/index.ts'
import type { AdoptedNamespaces } from './adopted-namespaces.ts'
import { connectEndpoint } from './connect-endpoint.ts'
import { networkOf } from '#network/listening/index.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { Direction, GatewayMetrics } from './gateway-metrics.ts'
import { joinLegs, plainLeg, type Leg } from './leg.ts'
import type { Route } from './listeners.ts'
import { RefusedByPeer, type PeerDialer } from './peer-dialer.ts'
import { refuse } from './peer-server.ts'
import type { Peer, Peers } from './peers.ts'
import { plainAddress, type PodAddresses } from './pod-addresses.ts'
import type { ServiceEndpoints } from './service-endpoints.ts'
import { answerLine, type Refusal, type Target } from './wire.ts'
import { parseDownstreamNamespace } from '#crds/index.ts'

export interface ConnectionsOptions {
  readonly limits: ConnectionLimits
  readonly pods: PodAddresses
  readonly peers: Peers
  readonly dialer: Pick<PeerDialer, 'dial'>
  readonly endpoints: ServiceEndpoints
  readonly namespaces: Pick<AdoptedNamespaces, 'nameHere'>
  readonly metrics: GatewayMetrics
  readonly log: Logger
  readonly idleMs: number
}

interface Passage {
  readonly direction: Direction
  readonly leg: Leg
  readonly clusterId: string
  /** The member of the other gateway. */
  readonly member: string
  /** The network of a client that is no known pod. */
  readonly stranger?: string
}

export class Connections {
  readonly #options: ConnectionsOptions
  /** The functions that reset the open connections, each with the member of the other gateway. */
  readonly #open = new Map<() => void, string>()
  /** By address, the connections from addresses that belonged to no known pod when the connection was opened. */
  readonly #ofStrangers = new Map<string, Set<{ readonly clusterId: string; readonly reset: () => void }>>()
  #drained: (() => void) | undefined

  constructor(options: ConnectionsOptions) {
    this.#options = options
    // A pod can connect before its status has its address.
    options.pods.onPod((address, clusterId) => {
      for (const stranger of this.#ofStrangers.get(address) ?? [])
        if (stranger.clusterId !== clusterId) stranger.reset()
    })
  }

  get size(): number {
    return this.#open.size
  }

  /** Handles the connection of a pod of this member to a listener. */
  async outgoing(client: Socket, { member, clusterId, target }: Route): Promise<void> {
    const leg = plainLeg(client)
    const address = plainAddress(client.remoteAddress ?? '')
    // Checked before the connection counts against the limits of the logical cluster.
    const known = this.#options.pods.known(address)
    if (known !== undefined && known !== clusterId) {
      this.#refuseClient(leg, 'foreign-pod')
      return
    }
    const stranger = known === undefined ? { stranger: networkOf(address) } : {}
    await this.#pass({ direction: 'outgoing', leg, clusterId, member, ...stranger }, async () => {
      const owner = await this.#options.pods.clusterOf(address)
      if (owner !== undefined && owner !== clusterId) {
        this.#refuseClient(leg, 'foreign-pod')
        return
      }
      const end = owner === undefined ? this.#addStranger(address, clusterId, () => leg.reset()) : undefined
      try {
        const far = await this.#dial(member, target)
        if (typeof far === 'string') {
          this.#refuseClient(leg, far)
          return
        }
        await this.#join('outgoing', leg, far)
      } finally {
        end?.()
      }
    })
  }

  /** Handles a peer's request for a Service of this member. */
  async incoming(leg: Leg, peer: Peer, target: Target): Promise<void> {
    const clusterId = parseDownstreamNamespace(target.namespace)?.clusterId
    if (clusterId === undefined || !peer.clusters.has(clusterId)) {
      this.#refusePeer(leg, 'forbidden')
      return
    }
    await this.#pass({ direction: 'incoming', leg, clusterId, member: peer.member }, async () => {
      const namespace = this.#options.namespaces.nameHere(target.namespace)
      const connected = await connectEndpoint(this.#options.endpoints.choose({ ...target, namespace }))
      if (connected === undefined) {
        this.#refusePeer(leg, 'unreachable')
        return
      }
      const closed = this.#options.endpoints.opened(connected.endpoint)
      try {
        leg.stream.write(answerLine())
        await this.#join('incoming', leg, plainLeg(connected.socket))
      } finally {
        closed()
      }
    })
  }

  /** Resolves when no connection is open. */
  async drained(): Promise<void> {
    if (this.#open.size === 0) return
    await new Promise<void>((resolve) => (this.#drained = resolve))
  }

  /** Resets all connections. */
  reset(): void {
    for (const reset of [...this.#open.keys()]) reset()
  }

  /** Resets the connections with a member that is no longer a peer. */
  resetOf(gone: string): void {
    for (const [reset, member] of [...this.#open]) if (member === gone) reset()
  }

  /** Counts the connection against the limits while `work` runs; refuses it if they are reached. */
  async #pass(passage: Passage, work: () => Promise<void>): Promise<void> {
    const { direction, leg, member } = passage
    const release = this.#options.limits.take(passage)
    if (release === undefined) {
      if (direction === 'incoming') this.#refusePeer(leg, 'busy')
      else this.#refuseClient(leg, 'busy')
      return
    }
    const reset = (): void => leg.reset()
    this.#open.set(reset, member)
    try {
      await work()
    } catch (error) {
      this.#options.log.warn('a connection failed', { direction, error })
      this.#options.metrics.refused(direction, 'error')
      leg.reset()
    } finally {
      this.#open.delete(reset)
      release()
      if (this.#open.size === 0) this.#drained?.()
    }
  }

  /**
   * Connects through the other gateway. Tries a second time on a new connection, because no bytes of the client were
   * passed on yet. Resolves with the reason, a string, if there is no connection.
   */
  async #dial(member: string, target: Target): Promise<Leg | string> {
    const { peers, dialer, log } = this.#options
    let failed: unknown
    for (let attempt = 0; attempt < 2; attempt++) {
      const peer = peers.ofMember(member)
      if (peer === undefined) return 'no-peer'
      try {
        return await dialer.dial(peer, target)
      } catch (error) {
        failed = error
      }
    }
    if (failed instanceof RefusedByPeer) return `peer-${failed.reason}`
    log.warn('the gateway of another member cannot be reached', { member, error: failed })
    return 'peer-not-reached'
  }

  async #join(direction: Direction, client: Leg, service: Leg): Promise<void> {
    const { metrics, idleMs } = this.#options
    metrics.opened(direction)
    try {
      const onBytes = (fromClient: number, toClient: number): void => metrics.passed(direction, fromClient, toClient)
      await joinLegs(client, service, { idleMs, onBytes })
    } finally {
      metrics.closed(direction)
    }
  }

  #addStranger(address: string, clusterId: string, reset: () => void): () => void {
    const known = this.#ofStrangers.get(address) ?? new Set()
    this.#ofStrangers.set(address, known)
    const one = { clusterId, reset }
    known.add(one)
    return () => {
      known.delete(one)
      if (known.size === 0 && this.#ofStrangers.get(address) === known) this.#ofStrangers.delete(address)
    }
  }

  #refuseClient(leg: Leg, reason: string): void {
    this.#options.metrics.refused('outgoing', reason)
    leg.reset()
  }

  #refusePeer(leg: Leg, reason: Refusal): void {
    this.#options.metrics.refused('incoming', reason)
    refuse(leg, reason)
  }
}
