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
import { asSocket, duplexOf, endTogether, keepAlive, sessionSettings, type SessionKind } from '#network/tunnel/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { ClusterOwnership, Peer } from '#virtualapi/request/ownership.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import type { AgentIdentity } from './identity.ts'

/** An agent whose certificate was verified. */
type ConnectedAgent = Pick<AgentIdentity, 'member' | 'uid' | 'fingerprint'>

interface Session extends ConnectedAgent {
  readonly kind: SessionKind
  readonly http2: ClientHttp2Session
  seenMs: number
}

interface TunnelsOptions {
  /** Absent: this process holds all tunnels. */
  readonly ownership?: ClusterOwnership
  /** Opens a connection through the tunnel that another replica holds. */
  readonly dialPeer: (peer: Peer, member: TunnelledMember, kind: SessionKind) => Promise<Duplex>
  readonly clock: Clock
  readonly log: Logger
}

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
  const dialPeer: TunnelsOptions['dialPeer'] = async (peer, member, kind) => {
    if (peers === undefined) throw new Error('a connection is to be passed on, and no other process is known')
    const connecting = AbortSignal.timeout(peerMs)
    const transport = httpTransport({ server: `http://${peer.name}`, dial: () => peers.socket(peer, connecting) })
    return await remoteDialer(transport).dial(member, kind)
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

  async dial(member: TunnelledMember, kind: SessionKind): Promise<Duplex> {
    const owner = this.otherOwnerOf(member.uid)
    return owner === undefined ? this.dialHere(member, kind) : await this.#options.dialPeer(owner, member, kind)
  }

  /** A connection through a tunnel of this process. Throws 503 if no agent of the member is connected to it. */
  dialHere({ name, uid }: TunnelledMember, kind: SessionKind): Duplex {
    const session = this.#sessions.get(uid)?.findLast((one) => one.kind === kind && !one.http2.closed)
    if (session === undefined) throw serviceUnavailable(this.#absence(name, uid))
    const stream = session.http2.request({ ':method': 'CONNECT', ':authority': 'api' }, { endStream: false })
    return asSocket(stream)
  }

  /** Takes a WebSocket on which the agent serves HTTP/2. Dispose of this object to end all of them. */
  add(agent: ConnectedAgent, kind: SessionKind, webSocket: WebSocket): void {
    const { log, clock } = this.#options
    const { member } = agent
    const http2 = connect('http://agent', { createConnection: () => duplexOf(webSocket), ...sessionSettings })
    endTogether(http2, webSocket)
    const session: Session = { ...agent, kind, http2, seenMs: clock.now() }
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

/** The id by whose bucket the replicas divide the tunnels among them. */
function bucketIdOf(uid: string): ClusterId {
  return clusterIdOf(uid)
}
