// Shares the event loop fairly among logical clusters. Without this, all of a tenant's many concurrent requests would
// be answered before the next tenant's single one.

/**
 * How long requests run at once in an iteration of the event loop before those of busy flows must wait, milliseconds.
 * Shorter while there are several flows: what the others send is only seen in the next iteration.
 */
const sliceMs = { alone: 2, shared: 0.7 }
/** Flows that had a turn within this time of one another share the loop, milliseconds. */
const sharedForMs = 200

/**
 * In each iteration of the event loop every flow (logical cluster) gets at least one turn; flows that want more share
 * the rest of a slice, round robin. The callers bound the queues: each request, watch and answer waits for one turn at
 * a time.
 */
export class EventLoopShare {
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Flows that had a turn in this iteration. */
  readonly #served = new Set<string>()
  #sliceEnd = 0
  #lastFlow: string | undefined
  #sharedUntil = -Infinity
  #isPassing = false

  /** The number of waiting callers. */
  get waiting(): number {
    let count = 0
    for (const queue of this.#waiting.values()) count += queue.length
    return count
  }

  /** Resolves when it is this flow's turn; undefined: no need to wait. */
  turn(flow: string): Promise<void> | undefined {
    if (!this.#isPassing) this.#beginPass()
    const queue = this.#waiting.get(flow)
    if (queue === undefined && (!this.#served.has(flow) || performance.now() < this.#sliceEnd)) {
      this.#serving(flow)
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
    const now = performance.now()
    this.#sliceEnd = now + (now < this.#sharedUntil ? sliceMs.shared : sliceMs.alone)
    setImmediate(this.#nextPass)
  }

  #serving(flow: string): void {
    this.#served.add(flow)
    if (flow === this.#lastFlow) return
    if (this.#lastFlow !== undefined) this.#sharedUntil = performance.now() + sharedForMs
    this.#lastFlow = flow
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

  /** Gives one turn, and the next after the microtasks of the first. */
  #serve(): void {
    for (const [flow, queue] of this.#waiting) {
      // Move the flow to the end of the queue.
      this.#waiting.delete(flow)
      const resolve = queue.shift()
      if (queue.length > 0) this.#waiting.set(flow, queue)
      this.#serving(flow)
      resolve?.()
      break
    }
    // process.nextTick from a microtask runs after all microtasks, also those of the turn.
    if (this.#waiting.size > 0) queueMicrotask(() => process.nextTick(this.#serveMore))
  }
}
