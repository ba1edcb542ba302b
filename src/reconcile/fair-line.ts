// Who is next: one key of each turn after the other, within a turn in order of arrival. Taking one costs the same however many
// wait.

/** Keys in order of arrival, each once. */
class Line {
  readonly #keys = new Set<string>()
  // One walk for all takes: a new one would pass over the holes that the last ones left at the front.
  #walk = this.#keys.values()

  get size(): number {
    return this.#keys.size
  }

  add(key: string): void {
    this.#keys.add(key)
  }

  take(): string | undefined {
    let next = this.#walk.next()
    if (next.done === true) {
      this.#walk = this.#keys.values()
      next = this.#walk.next()
    }
    if (next.done === true) return undefined
    this.#keys.delete(next.value)
    return next.value
  }
}

export class FairLine {
  readonly #fairnessKey: (key: string) => string
  /** Those in which somebody waits. */
  readonly #turns = new Map<string, Line>()
  #order = new Line()
  #size = 0

  /** `fairnessKey`: on whose account a key is taken; must always say the same of one key. */
  constructor(fairnessKey: (key: string) => string) {
    this.#fairnessKey = fairnessKey
  }

  /** Keys that wait. */
  get size(): number {
    return this.#size
  }

  /** Nothing where it waits already. */
  add(key: string): void {
    const turn = this.#fairnessKey(key)
    let line = this.#turns.get(turn)
    if (line === undefined) {
      this.#turns.set(turn, (line = new Line()))
      this.#order.add(turn)
    }
    this.#size -= line.size
    line.add(key)
    this.#size += line.size
  }

  /** The next one; undefined where none waits. */
  take(): string | undefined {
    const turn = this.#order.take()
    const line = turn === undefined ? undefined : this.#turns.get(turn)
    if (turn === undefined || line === undefined) return undefined
    const key = line.take()
    this.#size--
    if (line.size > 0) this.#order.add(turn)
    else this.#turns.delete(turn)
    return key
  }

  clear(): void {
    this.#turns.clear()
    this.#order = new Line()
    this.#size = 0
  }
}
