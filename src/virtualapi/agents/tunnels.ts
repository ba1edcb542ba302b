// The tunnels of agents that this process holds, and the way to tunnels that other replicas hold.
import { connect, type ClientHttp2Session } from 'node:http2'
import type { Duplex } from 'node:stream'
import { LRUCache } from 'lru-cache'
import type { WebSocket } from 'ws'
import { clusterIdOf, type ClusterId } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import { httpTransport } from '#client/index.ts'
import { remoteDialer, type MemberDialer, type TunnelledMember } from '#client/member/index.ts'
import {
  asSocket,
  duplexOf,
  endTogether,
  keepAlive,
  sessionSettings,
  type SessionKind,
  type TunnelOffer,
} from '#network/tunnel/index.ts'
import { programVersion, type Logger } from '#telemetry/index.ts'
import type { ClusterOwnership, Peer } from '#virtualapi/request/ownership.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import type { AgentIdentity } from './identity.ts'

/** An agent whose certificate was verified. */
type ConnectedAgent = Pick<AgentIdentity, 'member' | 'uid' | 'fingerprint'>

interface Session extends ConnectedAgent {
  readonly kind: SessionKind
  readonly offer: TunnelOffer
  readonly http2: ClientHttp2Session
  seenMs: number
}

/** What a connection needs. */
interface Wanted {
  readonly kind: SessionKind
  /** A capability that the agent must have. */
  readonly needs?: string | undefined
}

interface TunnelsOptions {
  /** Absent: this process holds all tunnels. */
  readonly ownership?: ClusterOwnership
  /** Opens a connection through the tunnel that another replica holds. */
  readonly dialPeer: (peer: Peer, member: TunnelledMember, wanted: Wanted) => Promise<Duplex>
  readonly clock: Clock
  readonly log: Logger
}

/** What an admin of the member does about an agent that is too old, or too new. */
export const updateAdvice = `in that member, set the image of Deployment kcp-agent in namespace kcp-system to version ${programVersion}`

/** Sessions of one kind that a member may have at once: two agents, while each of them renews its session. */
const maxSessions = 4
/** Number of members of which this process remembers when it has seen their agents. */
const maxSeen = 10_000

/** How long the connection to another replica may take, milliseconds. */
const peerMs = 10_000

/**
 * Each member's tunnel belongs to the replica that owns the bucket of the member's uid, as logical clusters do: agents
 * and users of a tunnel meet there without further coordination.
 */
export function createTunnels({
  ownership,
  peers,
  ...rest
}: Pick<ServerDependencies, 'ownership' | 'peers' | 'clock' | 'log'>): Tunnels {
  const dialPeer: TunnelsOptions['dialPeer'] = async (peer, member, { kind, needs }) => {
    if (peers === undefined) throw new Error('a connection is to be passed on, and no other process is known')
    const connecting = AbortSignal.timeout(peerMs)
    const transport = httpTransport({ server: `http://${peer.name}`, dial: () => peers.socket(peer, connecting) })
    return await remoteDialer(transport).dial(member, kind, needs)
  }
  return new Tunnels({ ...(ownership && { ownership }), dialPeer, ...rest })
}

export class Tunnels implements MemberDialer, Disposable {
  readonly #options: TunnelsOptions
  /** By uid of the MemberCluster, the newest session last. */
  readonly #sessions = new Map<string, Session[]>()
  /** When an agent of the member was last seen by this process, by uid, milliseconds. */
  readonly #seen = new LRUCache<string, number>({ max: maxSeen })
  readonly #unfollow: (() => void) | undefined

  constructor(options: TunnelsOptions) {
    this.#options = options
    this.#unfollow = options.ownership?.follow({
      gained: () => undefined,
      lost: (isLost) => this.end(({ uid }) => isLost(bucketIdOf(uid))),
    })
  }

  /** Number of open sessions of this kind. */
  sessionsOf(kind: SessionKind): number {
    let count = 0
    for (const sessions of this.#sessions.values()) count += sessions.filter((one) => one.kind === kind).length
    return count
  }

  /** The replica that holds the tunnel of the member instead of this one. Throws 503 while none is known. */
  otherOwnerOf(uid: string): Peer | undefined {
    const { ownership } = this.#options
    const id = bucketIdOf(uid)
    if (ownership === undefined || ownership.owns(id)) return undefined
    const owner = ownership.ownerOf(id)
    if (owner === undefined) throw serviceUnavailable('another server takes over the tunnel, please try again')
    return owner
  }

  async dial(member: TunnelledMember, kind: SessionKind, needs?: string): Promise<Duplex> {
    const owner = this.otherOwnerOf(member.uid)
    const wanted = { kind, needs }
    return owner === undefined ? this.dialHere(member, wanted) : await this.#options.dialPeer(owner, member, wanted)
  }

  /**
   * A connection through a tunnel of this process. Throws 503 if no agent of the member is connected to it, or none
   * that can do what is needed.
   */
  dialHere({ name, uid }: TunnelledMember, { kind, needs }: Wanted): Duplex {
    const open = this.#openOf(uid, kind)
    const session = open.findLast(({ offer }) => needs === undefined || offer.capabilities.includes(needs))
    if (session === undefined)
      throw serviceUnavailable(open[0] && needs ? lacking(name, needs, open[0].offer) : this.#absence(name, uid))
    const stream = session.http2.request({ ':method': 'CONNECT', ':authority': 'api' }, { endStream: false })
    return asSocket(stream)
  }

  /** Whether a session of this kind is open in this process. */
  isConnected({ uid }: Pick<ConnectedAgent, 'uid'>, kind: SessionKind): boolean {
    return this.#openOf(uid, kind).length > 0
  }

  /** Takes a WebSocket on which the agent serves HTTP/2. Dispose of this object to end all of them. */
  add(
    agent: ConnectedAgent,
    { kind, offer }: { readonly kind: SessionKind; readonly offer: TunnelOffer },
    webSocket: WebSocket,
  ): void {
    const { log, clock } = this.#options
    const { member } = agent
    const http2 = connect('http://agent', { createConnection: () => duplexOf(webSocket), ...sessionSettings })
    endTogether(http2, webSocket)
    const session: Session = { ...agent, kind, offer, http2, seenMs: clock.now() }
    http2.on('error', () => undefined)
    http2.once('connect', () => keepAlive(http2, { answered: () => this.#saw(session) }))
    http2.once('close', () => {
      this.#remove(session)
      log.info('a session of an agent has ended', { member, session: kind })
    })
    this.#saw(session)
    this.#keep(session)
    log.info('an agent has connected', { member, session: kind })
  }

  /** Ends the sessions of these agents at once. */
  end(isOver: (agent: ConnectedAgent) => boolean): void {
    for (const sessions of [...this.#sessions.values()])
      for (const session of [...sessions]) if (isOver(session)) session.http2.destroy()
  }

  [Symbol.dispose](): void {
    this.#unfollow?.()
    this.end(() => true)
  }

  #openOf(uid: string, kind: SessionKind): Session[] {
    return this.#sessions.get(uid)?.filter((one) => one.kind === kind && !one.http2.closed) ?? []
  }

  #keep(session: Session): void {
    const { uid, kind } = session
    const same = this.#sessions.get(uid)?.filter((one) => one.kind === kind) ?? []
    // An agent that connects in a loop holds a few sessions only.
    for (const old of same.slice(0, Math.max(0, same.length + 1 - maxSessions))) {
      this.#remove(old)
      old.http2.destroy()
    }
    this.#sessions.set(uid, [...(this.#sessions.get(uid) ?? []), session])
  }

  #remove(session: Session): void {
    const left = this.#sessions.get(session.uid)?.filter((one) => one !== session) ?? []
    if (left.length === 0) this.#sessions.delete(session.uid)
    else this.#sessions.set(session.uid, left)
  }

  #saw(session: Session): void {
    session.seenMs = this.#options.clock.now()
    this.#seen.set(session.uid, session.seenMs)
  }

  #absence(name: string, uid: string): string {
    const seenMs = this.#seen.get(uid)
    const since = seenMs === undefined ? 'since this server has started' : `since ${timestamp(seenMs)}`
    return `no agent of member cluster "${name}" has been connected ${since}: look at the log of Deployment kcp-agent in its namespace kcp-system`
  }
}

function lacking(name: string, needs: string, { program = 'from before 0.1' }: TunnelOffer): string {
  return `the agent of member cluster "${name}", version ${program}, cannot do "${needs}": ${updateAdvice}`
}

/** The id by whose bucket the replicas divide the tunnels among them. */
function bucketIdOf(uid: string): ClusterId {
  return clusterIdOf(uid)
}
