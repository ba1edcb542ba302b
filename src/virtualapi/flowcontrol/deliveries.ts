// Schedules the delivery of watch events: a change that thousands of watches wait for is delivered to a few of them at
// a time, in the turns of their logical cluster (see EventLoopShare), so that requests of other logical clusters are
// served in between.
import type { EventLoopShare } from './event-loop-share.ts'

export interface PendingDelivery {
  /** Delivers a part of the pending events; returns its size in bytes. Must not throw. */
  deliver(): number
}

/**
 * Bounds of one turn, which takes some tens of microseconds: the number of deliveries, and the bytes after which no
 * more are made.
 */
const perTurn = 8
const bytesPerTurn = 64 * 1024
/** How many served entries may stay at the front of a queue before they are removed from the array. */
const maxServedPrefix = 1024

export class Deliveries {
  readonly #loopShare: EventLoopShare
  /** Queues by flow; a queue exists while it is served. Each watch is queued at most once. */
  readonly #queues = new Map<string | undefined, PendingDelivery[]>()

  constructor(loopShare: EventLoopShare) {
    this.#loopShare = loopShare
  }

  /** Queues a delivery, which runs after the caller. Without a flow, the delivery does not wait for turns. */
  add(flow: string | undefined, delivered: PendingDelivery): void {
    const queue = this.#queues.get(flow)
    if (queue !== undefined) {
      queue.push(delivered)
      return
    }
    const created = [delivered]
    this.#queues.set(flow, created)
    queueMicrotask(() => void this.#serve(flow, created))
  }

  async #serve(flow: string | undefined, queue: PendingDelivery[]): Promise<void> {
    for (let next = 0; next < queue.length;) {
      const turn = flow === undefined ? undefined : this.#loopShare.turn(flow)
      if (turn !== undefined) await turn
      let bytes = 0
      for (const end = next + perTurn; next < end && bytes < bytesPerTurn; next++) bytes += queue[next]?.deliver() ?? 0
      if (next < maxServedPrefix) continue
      queue.splice(0, next)
      next = 0
    }
    this.#queues.delete(flow)
  }
}
