// Limits of open connections: in all, for each logical cluster, and for clients that are no pods of tenants, so that no
// client can use up the gateway.

export interface Bounds {
  readonly maxConnections: number
  readonly maxPerCluster: number
}

/** The opener of a connection. */
export interface Opener {
  readonly clusterId: string
  /**
   * The address of a client that is no known pod of a tenant: a node, an ingress controller, any other pod of the
   * member.
   */
  readonly stranger?: string
}

/** Fractions of `maxPerCluster` that strangers may use: all of them together, and those of one address. */
const [strangersShare, strangerShare] = [1 / 2, 1 / 4]
/**
 * The last `reservedShare` of `maxConnections` is only for logical clusters with few connections: with at most
 * `fewShare` of `maxConnections` each.
 */
const [reservedShare, fewShare] = [1 / 4, 1 / 100]
/** A full gateway counts as full until this fraction of `maxConnections` is free. */
const freeShare = 1 / 20

interface Counter {
  readonly key: string
  readonly max: number
}

export class ConnectionLimits {
  readonly #bounds: Bounds
  readonly #counts = new Map<string, number>()
  #all = 0
  #isFull = false

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#all
  }

  /** Whether the gateway is full: it has refused connections at the limit, and not enough have ended since. */
  get isFull(): boolean {
    if (this.#all <= this.#bounds.maxConnections * (1 - freeShare)) this.#isFull = false
    return this.#isFull
  }

  /** Counts one connection and returns the function that releases it; undefined if there are too many. */
  take(opener: Opener): (() => void) | undefined {
    const { maxConnections } = this.#bounds
    if (this.#all >= maxConnections) this.#isFull = true
    const counters = this.#countersOf(opener)
    if (this.#all >= maxConnections || counters.some(({ key, max }) => (this.#counts.get(key) ?? 0) >= max))
      return undefined
    this.#all++
    for (const { key } of counters) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#all--
      for (const { key } of counters) this.#giveBack(key)
    }
  }

  #countersOf({ clusterId, stranger }: Opener): Counter[] {
    const { maxConnections, maxPerCluster } = this.#bounds
    const isScarce = this.#all >= maxConnections * (1 - reservedShare)
    const ofCluster = isScarce ? Math.min(maxPerCluster, Math.ceil(maxConnections * fewShare)) : maxPerCluster
    const counters = [{ key: clusterId, max: ofCluster }]
    if (stranger === undefined) return counters
    const strangers = { key: `${clusterId} strangers`, max: Math.ceil(maxPerCluster * strangersShare) }
    const one = { key: `${clusterId} ${stranger}`, max: Math.ceil(maxPerCluster * strangerShare) }
    return [...counters, strangers, one]
  }

  #giveBack(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1
    if (left === 0) this.#counts.delete(key)
    else this.#counts.set(key, left)
  }
}
