// Reports that will soon be replaced. While a rollout is under way a member's counts change many times a second;
// upstream each change is a write that every watcher gets. Such a report waits for a moment, and the last one is
// written.
import type { Clock } from '#async/index.ts'

/** For how long a report may wait. */
const waitMs = 200
/** A report that is overdue by so many milliseconds is forgotten: its object was deleted while the report waited. */
const forgottenMs = 60_000

export class PassingReports {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** By name of the report: when it must be written, in monotonic milliseconds. A reconcile is queued for that time. */
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

  /** Forgets a report that has been written, or that need not be written any more. */
  forget(name: string): void {
    this.#due.delete(name)
  }
}
