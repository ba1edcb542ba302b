// A mutex per key, for callers that would otherwise conflict with each other.
import { abortable } from './abortable.ts'

export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** Keys that are held or waited for. */
  get size(): number {
    return this.#last.size
  }

  /** Resolves, in the order of calls, with the function that releases the key. Rejects with signal.reason. */
  async take(key: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#last.get(key) ?? Promise.resolve()
    let end = (): void => undefined
    const over = new Promise<void>((resolve) => {
      end = resolve
    })
    const mine = before.then(() => over)
    this.#last.set(key, mine)
    const leave = (): void => {
      end()
      if (this.#last.get(key) === mine) this.#last.delete(key)
    }
    try {
      await abortable(before, signal)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }
}
