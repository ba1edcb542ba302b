// The newest events in revision order, for watches that resume and lists of the past.
import type { Revision } from '#apimachinery/meta/index.ts'

/** Dropped slots at the front of the array before it is cut. */
const slack = 64

export class EventWindow<E extends { readonly revision: Revision }> {
  #events: E[] = []
  #head = 0
  #floor: Revision
  #changes = 0

  constructor(floor: Revision) {
    this.#floor = floor
  }

  /** Every event after this revision is here. */
  get floor(): Revision {
    return this.#floor
  }

  get size(): number {
    return this.#events.length - this.#head
  }

  /** Number of events ever added. A change of unknown revision, which is never an event here, counts as well. */
  get changes(): number {
    return this.#changes
  }

  get first(): E | undefined {
    return this.#events[this.#head]
  }

  push(event: E): void {
    this.#events.push(event)
    this.#changes++
  }

  /** Drops all events and raises the floor, after a change that is not an event here. */
  clear(floor: Revision): void {
    this.#events = []
    this.#head = 0
    this.#changes++
    this.#floor = floor
  }

  dropFirst(): E | undefined {
    const event = this.first
    if (!event) return undefined
    this.#floor = event.revision
    this.#head++
    if (this.#head === this.#events.length) {
      this.#events = []
      this.#head = 0
    } else if (this.#head > slack && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head)
      this.#head = 0
    }
    return event
  }

  /** Events added since `changes` had this value, oldest first; undefined if one of them was dropped. */
  sinceChange(changes: number): E[] | undefined {
    const count = this.#changes - changes
    if (count < 0 || count > this.size) return undefined
    return this.#events.slice(this.#events.length - count)
  }

  /** Events after `since`, oldest first; `since` must not be below the floor. */
  after(since: Revision): E[] {
    let low = this.#head
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle] as E).revision > since) high = middle
      else low = middle + 1
    }
    return this.#events.slice(low)
  }
}
