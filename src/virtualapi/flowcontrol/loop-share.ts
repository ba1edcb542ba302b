// Who may use the event loop now. One thread answers everybody: without this, a tenant with many requests at once would
// have all of them answered before the next tenant's one is looked at.

/** How long requests are answered as they come before those of busy tenants wait for the next pass of the loop, milliseconds. */
const sliceMs = 2

/**
 * In each pass of the event loop every flow (a logical cluster) gets at least one turn; those that want more share what is
 * left of two milliseconds, one turn each and again. What waits is bounded by whoever asks: requests, watches and pieces of
 * answers each wait for one turn at a time.
 */
export class LoopShare {
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Flows that had a turn in this pass. */
  readonly #served = new Set<string>()
  #sliceEnd = 0
  #isPassing = false

  /** KeyedMutex waited for. */
  get waiting(): number {
    let count = 0
    for (const queue of this.#waiting.values()) count += queue.length
    return count
  }

  /** Resolves when it is this flow's turn; undefined: go on at once. */
  turn(flow: string): Promise<void> | undefined {
    if (!this.#isPassing) this.#beginPass()
    const queue = this.#waiting.get(flow)
    if (queue === undefined && (!this.#served.has(flow) || performance.now() < this.#sliceEnd)) {
      this.#served.add(flow)
      return undefined
    }
    return new Promise((resolve) => {
      if (queue === undefined) this.#waiting.set(flow, [resolve])
      else queue.push(resolve)
    })
  }

  #beginPass(): void {
    this.#isPassing = true
    this.#served.clear()
    this.#sliceEnd = performance.now() + sliceMs
    setImmediate(this.#nextPass)
  }

  readonly #nextPass = (): void => {
    this.#isPassing = false
    if (this.#waiting.size === 0) return
    this.#beginPass()
    this.#serve()
  }

  readonly #serveMore = (): void => {
    if (performance.now() < this.#sliceEnd) this.#serve()
  }

  /** Gives one turn and, when what it brought about has run, the next. */
  #serve(): void {
    for (const [flow, queue] of this.#waiting) {
      // To the end of the line.
      this.#waiting.delete(flow)
      const resolve = queue.shift()
      if (queue.length > 0) this.#waiting.set(flow, queue)
      this.#served.add(flow)
      resolve?.()
      break
    }
    // A tick that is asked for by a microtask comes after all microtasks, the turn's own included.
    if (this.#waiting.size > 0) queueMicrotask(() => process.nextTick(this.#serveMore))
  }
}
