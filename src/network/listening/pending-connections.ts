// Limits and deadlines of connections that have not sent a request yet, so that no client keeps others out by opening
// many.
import { isIPv6, type Socket } from 'node:net'
import { LRUCache } from 'lru-cache'

export interface PendingBounds {
  /** How long a connection may be pending, milliseconds; checked every quarter of this time. */
  readonly maxMs: number
  /** Pending connections of one network: above this, its oldest one is reset. */
  readonly maxPerNetwork: number
  /**
   * Pending connections of all networks that are not trusted: above this, the oldest connection of the network with the
   * most is reset.
   */
  readonly max: number
  /** Pending connections of all trusted networks, which are counted separately. Default: `max`. */
  readonly maxTrusted?: number
}

/** Maximum number of networks that are remembered as trusted. */
const maxTrustedNetworks = 1000
const trustMs = 3_600_000

/** The other end of a connection: the same for a TCP socket and for the TLS socket that wraps it. */
export type PeerAddress = Pick<Socket, 'remoteAddress' | 'remotePort'>

interface Pending {
  readonly socket: Socket
  readonly network: string
  readonly since: number
}

export class PendingConnections implements Disposable {
  readonly #bounds: PendingBounds
  /** Pending connections by the address and port of the other end, in the order of arrival. */
  readonly #all = new Map<string, Pending>()
  readonly #strangers: Room
  readonly #trusted: Room
  /** The time at which the trust ends, by network. */
  readonly #trustedUntil = new LRUCache<string, number>({ max: maxTrustedNetworks })
  readonly #timer: NodeJS.Timeout

  constructor(bounds: PendingBounds) {
    this.#bounds = bounds
    const { maxMs, max, maxPerNetwork, maxTrusted = max } = bounds
    this.#strangers = new Room({ max, maxPerNetwork })
    this.#trusted = new Room({ max: maxTrusted, maxPerNetwork: maxTrusted })
    this.#timer = setInterval(() => this.#end(performance.now() - maxMs), maxMs / 4).unref()
  }

  get size(): number {
    return this.#all.size
  }

  /**
   * Adds a new connection. Above a limit, resets the oldest ones: an honest client sends its request soon and is then
   * no longer pending.
   */
  add(socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? '')
    const key = keyOf(socket)
    // The other end reset a connection and opened a new one from the same port.
    this.#remove(key)
    const room = this.#roomOf(network)
    for (let oldest = room.crowdedOut(network); oldest !== undefined; oldest = room.crowdedOut(network))
      this.#reset(oldest)
    this.#all.set(key, { socket, network, since: performance.now() })
    room.add(network, key)
    socket.once('close', () => {
      if (this.#all.get(key)?.socket === socket) this.#remove(key)
    })
  }

  /** The pending connection with this other end. */
  find(peer: PeerAddress): Socket | undefined {
    return this.#all.get(keyOf(peer))?.socket
  }

  /** Call this when the connection has asked for something public: it stays pending, as if it had been opened now. */
  renew(peer: PeerAddress): void {
    if (this.#all.size === 0) return
    const key = keyOf(peer)
    const pending = this.#all.get(key)
    if (pending === undefined) return
    this.#remove(key)
    this.#all.set(key, { ...pending, since: performance.now() })
    this.#roomOf(pending.network).add(pending.network, key)
  }

  /** Removes a connection that is no longer pending. */
  settle(peer: PeerAddress): void {
    if (this.#all.size > 0) this.#remove(keyOf(peer))
  }

  /**
   * Trusts the network of this address for an hour, because a client from there has proved its identity. Connections of
   * trusted networks are counted separately.
   */
  trust(address: string): void {
    this.#trustedUntil.set(networkOf(address), performance.now() + trustMs)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#all.clear()
  }

  #roomOf(network: string): Room {
    const until = this.#trustedUntil.peek(network) ?? 0
    return until > performance.now() ? this.#trusted : this.#strangers
  }

  #reset(key: string): void {
    const pending = this.#all.get(key)
    this.#remove(key)
    pending?.socket.resetAndDestroy()
  }

  #remove(key: string): void {
    const pending = this.#all.get(key)
    if (pending === undefined) return
    this.#all.delete(key)
    // Its network may have become trusted meanwhile.
    if (!this.#strangers.remove(pending.network, key)) this.#trusted.remove(pending.network, key)
  }

  #end(before: number): void {
    // The order is that of arrival: all connections after the first young one are young, too.
    for (const [key, { since }] of this.#all) {
      if (since > before) return
      this.#reset(key)
    }
  }
}

/** Keys of connections by network, with the networks sorted by how many they have. */
class Room {
  readonly #bounds: Pick<PendingBounds, 'max' | 'maxPerNetwork'>
  readonly #byNetwork = new Map<string, Set<string>>()
  /** The networks with one connection, with two and so on. */
  readonly #byCount: Set<string>[] = []
  #size = 0

  constructor(bounds: Pick<PendingBounds, 'max' | 'maxPerNetwork'>) {
    this.#bounds = bounds
  }

  /** The connection that must give way before the network gets another one; undefined if there is room. */
  crowdedOut(network: string): string | undefined {
    const own = this.#byNetwork.get(network)
    if (own !== undefined && own.size >= this.#bounds.maxPerNetwork) return own.values().next().value
    if (this.#size < this.#bounds.max) return undefined
    const [most] = this.#byCount.at(-1) ?? []
    return most === undefined ? undefined : this.#byNetwork.get(most)?.values().next().value
  }

  add(network: string, key: string): void {
    const keys = this.#byNetwork.get(network) ?? new Set()
    this.#byNetwork.set(network, keys)
    this.#count(network, keys.size, keys.size + 1)
    keys.add(key)
    this.#size++
  }

  /** Returns whether the connection was here. */
  remove(network: string, key: string): boolean {
    const keys = this.#byNetwork.get(network)
    if (keys?.delete(key) !== true) return false
    this.#count(network, keys.size + 1, keys.size)
    if (keys.size === 0) this.#byNetwork.delete(network)
    this.#size--
    return true
  }

  #count(network: string, before: number, after: number): void {
    if (before > 0) this.#byCount[before - 1]?.delete(network)
    if (after > 0) (this.#byCount[after - 1] ??= new Set()).add(network)
    while (this.#byCount.at(-1)?.size === 0) this.#byCount.pop()
  }
}

function keyOf({ remoteAddress, remotePort }: PeerAddress): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}

/** Groups of an IPv6 address that name a network: a host chooses its address in it freely (RFC 4291, section 2.5.4). */
const networkGroups = 4

/** The /64 network of an IPv6 address; every other address as it is. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!isIPv6(plain) || plain.includes('.')) return address
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':')
    const missing = 2 * networkGroups - groups.length - after.length
    groups.push(...Array.from({ length: missing }, () => '0'), ...after)
  }
  const numbers = groups.slice(0, networkGroups).map((group) => Number.parseInt(group, 16).toString(16))
  return `${numbers.join(':')}::/64`
}
