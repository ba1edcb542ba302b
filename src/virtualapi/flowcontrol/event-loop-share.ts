// Shares the event loop fairly among logical clusters. Without this, all concurrent requests of one tenant would be
// answered before the single request of the next tenant.

/**
 * How long requests may run in one iteration of the event loop before flows that already had a turn in it must wait,
 * milliseconds. The time is shorter while several flows are active, because requests that arrive meanwhile are read
 * only in the next iteration.
 */
const sliceMs = { alone: 2, shared: 0.7 }
/** How long the loop counts as shared after a turn went from one flow to another, milliseconds. */
const sharedForMs = 200

/**
 * In each iteration of the event loop every flow (logical cluster) gets at least one turn; flows that want more turns
 * share the rest of the slice, round robin. The callers bound the queues: each request, watch and response waits for
 * one turn at a time.
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

  /** Gives one turn, and the next one after the microtasks of the first. */
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
    // process.nextTick from a microtask runs after all microtasks, including the microtasks of the turn.
    if (this.#waiting.size > 0) queueMicrotask(() => process.nextTick(this.#serveMore))
  }
}
