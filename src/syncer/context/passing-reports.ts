// Reports that will soon be replaced. While a rollout is under way a member's counts change many times a second;
// upstream each of them is a write for everybody who watches. Such a report waits for a moment, and the last one is
// written.
import type { Clock } from '#async/index.ts'

/** For how long a report may wait. */
const waitMs = 200
/** What is so late belongs to an object that was deleted while it waited. */
const forgottenMs = 60_000

export class PassingReports {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** By name of the report: when it must be written. Each has a reconcile at that time. */
  readonly #due = new Map<string, number>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Number of reports that wait. */
  get size(): number {
    return this.#due.size
  }

  /** In how many milliseconds the report must be written; undefined if that is now. */
  wait(name: string): number | undefined {
    const now = this.#clock.monotonic()
    const due = this.#due.get(name) ?? now + waitMs
    this.#forgetOld(now)
    if (due <= now) {
      this.#due.delete(name)
      return undefined
    }
    this.#due.set(name, due)
    return due - now
  }

  /** The oldest are first: each waits equally long. */
  #forgetOld(now: number): void {
    for (const [name, due] of this.#due) {
      if (due > now - forgottenMs) return
      this.#due.delete(name)
    }
  }

  /** There is nothing to write any more, or it has been written. */
  forget(name: string): void {
    this.#due.delete(name)
  }
}
