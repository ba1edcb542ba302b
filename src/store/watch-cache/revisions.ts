// The newest revision the watch cache has applied, and the callers that wait for a later one.
import type { Revision } from '#apimachinery/meta/index.ts'

interface Waiter {
  readonly revision: Revision
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class Revisions {
  #current: Revision
  readonly #waiters = new Set<Waiter>()

  constructor(start: Revision) {
    this.#current = start
  }

  get current(): Revision {
    return this.#current
  }

  advance(revision: Revision): void {
    if (revision <= this.#current) return
    this.#current = revision
    for (const waiter of this.#waiters) if (waiter.revision <= revision) waiter.resolve()
  }

  /** Resolves once `current` is at least `revision`; rejects with signal.reason when aborted first. */
  reached(revision: Revision, signal: AbortSignal): Promise<void> {
    if (revision <= this.#current) return Promise.resolve()
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error)
        return
      }
      const abort = (): void => {
        leave()
        reject(signal.reason as Error)
      }
      const leave = (): void => {
        this.#waiters.delete(waiter)
        signal.removeEventListener('abort', abort)
      }
      const waiter: Waiter = {
        revision,
        resolve: () => {
          leave()
          resolve()
        },
        reject: (error) => {
          leave()
          reject(error)
        },
      }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  /** Rejects every waiting caller. */
  fail(error: Error): void {
    for (const waiter of [...this.#waiters]) waiter.reject(error)
  }
}
