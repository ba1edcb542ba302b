// The encoded lines of events, kept for other watches that show the same events. All watches take an event within a
// short time, but the watch cache keeps it for minutes, so only the newest lines are kept.
import { Buffer } from 'node:buffer'
import type { CacheEvent } from '#store/watch-cache/index.ts'
import type { ObjectView } from '#virtualapi/codec/representations.ts'

interface SharedLinesOptions {
  /**
   * Bytes of the lines in one generation; two generations are kept. The last lines of each may exceed this. Default 2
   * MiB.
   */
  readonly maxBytes?: number
}

/** The lines of several events that a watch took at once. */
interface Batch {
  readonly first: CacheEvent
  readonly count: number
  readonly view: ObjectView
  readonly lines: Buffer
}

interface Generation {
  /** A view fixes the version and the format. */
  readonly lines: WeakMap<ObjectView, WeakMap<CacheEvent, Buffer>>
  /** The batches, by their last event. */
  readonly batches: WeakMap<CacheEvent, Batch>
}

/** Lines are copied into blocks of this size, unless they are longer than a quarter of it. */
const blockBytes = 64 * 1024

/** The lines in two generations: when the newer generation is full, the older one is dropped. */
export class SharedLines {
  readonly #maxBytes: number
  #newer = generation()
  #older = generation()
  #newerBytes = 0
  /**
   * The block that lines are copied into. Node's own pool is not used, because a line would retain a part of it that
   * mostly holds other data.
   */
  #block = Buffer.alloc(0)
  #used = 0

  constructor({ maxBytes = 2 * 1024 * 1024 }: SharedLinesOptions = {}) {
    this.#maxBytes = maxBytes
  }

  /** The line of an event, if it is kept. */
  line(event: CacheEvent, view: ObjectView): Buffer | undefined {
    return this.#newer.lines.get(view)?.get(event) ?? this.#older.lines.get(view)?.get(event)
  }

  /** Joins the parts of a line and keeps it. */
  keepLine(event: CacheEvent, view: ObjectView, parts: readonly Uint8Array[]): Buffer {
    const line = this.#joined(parts)
    let lines = this.#newer.lines.get(view)
    if (lines === undefined) this.#newer.lines.set(view, (lines = new WeakMap<CacheEvent, Buffer>()))
    lines.set(event, line)
    this.#grow(line.length)
    return line
  }

  /** The lines of at least two events, which a watch without selectors took at once, if they are kept. */
  batch(events: readonly CacheEvent[], view: ObjectView): Buffer | undefined {
    const last = events.at(-1) as CacheEvent
    return linesOf(this.#newer.batches.get(last), events, view) ?? linesOf(this.#older.batches.get(last), events, view)
  }

  /** Joins the lines of such a batch and keeps them. */
  keepBatch(events: readonly CacheEvent[], view: ObjectView, parts: readonly Uint8Array[]): Buffer {
    const lines = this.#joined(parts)
    const [first, last] = [events[0], events.at(-1)] as [CacheEvent, CacheEvent]
    this.#newer.batches.set(last, { first, count: events.length, view, lines })
    this.#grow(lines.length)
    return lines
  }

  #grow(bytes: number): void {
    this.#newerBytes += bytes
    if (this.#newerBytes <= this.#maxBytes) return
    this.#older = this.#newer
    this.#newer = generation()
    this.#newerBytes = 0
  }

  #joined(parts: readonly Uint8Array[]): Buffer {
    let length = 0
    for (const part of parts) length += part.length
    const bytes = this.#allocate(length)
    let at = 0
    for (const part of parts) {
      bytes.set(part, at)
      at += part.length
    }
    return bytes
  }

  #allocate(length: number): Buffer {
    if (length > blockBytes / 4) return Buffer.allocUnsafeSlow(length)
    if (this.#used + length > this.#block.length) {
      this.#block = Buffer.allocUnsafeSlow(blockBytes)
      this.#used = 0
    }
    this.#used += length
    return this.#block.subarray(this.#used - length, this.#used)
  }
}

/** Two batches of one scope with equal first event, last event and length hold the same events. */
function linesOf(batch: Batch | undefined, events: readonly CacheEvent[], view: ObjectView): Buffer | undefined {
  return batch?.first === events[0] && batch?.count === events.length && batch.view === view ? batch.lines : undefined
}

function generation(): Generation {
  return { lines: new WeakMap(), batches: new WeakMap() }
}
