// What cannot be kept, by name up to a bound, and how much there is.
import type { NotKept, NotKeptEntry, NotKeptReason } from '#mover/contract/index.ts'

const maxNamed = 100

export class Losses {
  readonly #named: NotKeptEntry[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(path: string, reason: NotKeptReason, detail?: string): void {
    this.#count++
    if (this.#named.length < maxNamed) this.#named.push({ path, reason, ...(detail !== undefined && { detail }) })
  }

  get list(): NotKept {
    return { count: this.#count, named: [...this.#named] }
  }
}
