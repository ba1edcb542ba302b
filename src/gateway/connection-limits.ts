// How many connections pass at once: in all, and for each logical cluster, so that one tenant cannot take the gateway from others.

export interface Bounds {
  readonly maxConnections: number
  readonly maxPerCluster: number
}

export class ConnectionLimits {
  readonly #bounds: Bounds
  readonly #byCluster = new Map<string, number>()
  #all = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#all
  }

  /** Takes one connection for the logical cluster. Undefined: there are too many. The function that it returns gives it back. */
  take(clusterId: string): (() => void) | undefined {
    const known = this.#byCluster.get(clusterId) ?? 0
    if (this.#all >= this.#bounds.maxConnections || known >= this.#bounds.maxPerCluster) return undefined
    this.#all++
    this.#byCluster.set(clusterId, known + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#all--
      const left = (this.#byCluster.get(clusterId) ?? 1) - 1
      if (left === 0) this.#byCluster.delete(clusterId)
      else this.#byCluster.set(clusterId, left)
    }
  }
}
