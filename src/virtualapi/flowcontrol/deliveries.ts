// Who has something to tell and when: a change that thousands watch is told to one after the other, in the turns of the
// logical cluster whose watchers they are, so that others' requests come between.
import type { LoopShare } from './loop-share.ts'

export interface Delivered {
  /** Tells a part of what there is to tell; returns its bytes. Must not throw. */
  deliver(): number
}

/** Told in one turn, and no more once it was so many bytes: some tens of microseconds. */
const perTurn = 8
const bytesPerTurn = 64 * 1024
/** Places at the front of a line that were served, before they are cut. */
const slack = 1024

export class Deliveries {
  readonly #loopShare: LoopShare
  /** What waits, by flow; a line is there while it is served. Holds each watch at most once. */
  readonly #lines = new Map<string | undefined, Delivered[]>()

  constructor(loopShare: LoopShare) {
    this.#loopShare = loopShare
  }

  /** Has it deliver soon, after whoever is calling. Without a flow it waits for nobody's turn. */
  add(flow: string | undefined, delivered: Delivered): void {
    const line = this.#lines.get(flow)
    if (line !== undefined) {
      line.push(delivered)
      return
    }
    const started = [delivered]
    this.#lines.set(flow, started)
    queueMicrotask(() => void this.#serve(flow, started))
  }

  async #serve(flow: string | undefined, line: Delivered[]): Promise<void> {
    for (let next = 0; next < line.length;) {
      const turn = flow === undefined ? undefined : this.#loopShare.turn(flow)
      if (turn !== undefined) await turn
      let bytes = 0
      for (const end = next + perTurn; next < end && bytes < bytesPerTurn; next++) bytes += line[next]?.deliver() ?? 0
      if (next < slack) continue
      line.splice(0, next)
      next = 0
    }
    this.#lines.delete(flow)
  }
}
