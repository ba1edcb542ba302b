// What a round has done so far, and its progress for people.
import type { RoundProgress } from '#mover/contract/index.ts'

const windowMs = 10_000

export class RoundCounts {
  phase: RoundProgress['phase'] = 'connecting'
  entries = 0
  bytes = 0
  created = 0
  updated = 0
  deleted = 0
  bytesChanged = 0
  unsettled = 0
  /** Changes of any kind within this pass. */
  repairs = 0
  entriesTotal: number | undefined
  bytesTotal: number | undefined
  readonly #wire: () => number
  readonly #samples: { atMs: number; bytes: number }[] = []

  constructor(wire: () => number) {
    this.#wire = wire
  }

  get bytesOnWire(): number {
    return this.#wire()
  }

  /** A pass over all entries begins. */
  begin(phase: RoundProgress['phase']): void {
    this.phase = phase
    this.entries = 0
    this.bytes = 0
    this.repairs = 0
    this.#samples.length = 0
  }

  progress(): RoundProgress {
    const now = { atMs: performance.now(), bytes: this.bytes }
    this.#samples.push(now)
    while ((this.#samples[0]?.atMs ?? 0) < now.atMs - windowMs) this.#samples.shift()
    const first = this.#samples[0] ?? now
    const seconds = (now.atMs - first.atMs) / 1000
    const { phase, entries, bytes, bytesChanged, bytesOnWire, entriesTotal, bytesTotal } = this
    return {
      phase,
      entriesDone: entries,
      ...(entriesTotal !== undefined && { entriesTotal: Math.max(entriesTotal, entries) }),
      bytesDone: bytes,
      ...(bytesTotal !== undefined && { bytesTotal: Math.max(bytesTotal, bytes) }),
      bytesChanged,
      bytesOnWire,
      bytesPerSecond: seconds > 0 ? Math.round((bytes - first.bytes) / seconds) : 0,
    }
  }
}
