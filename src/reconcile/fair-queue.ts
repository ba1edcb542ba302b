// The order in which waiting keys are taken: groups in rotation, one key each; within a group urgent keys first, else
// in order of arrival. Taking a key costs the same however many wait.

/** Keys in order of arrival, without duplicates. */
class Fifo {
  readonly #keys = new Set<string>()
  // One iterator for all takes: a new one would have to skip the deleted entries at the front of the Set.
  #iterator = this.#keys.values()

  get size(): number {
    return this.#keys.size
  }

  add(key: string): void {
    this.#keys.add(key)
  }

  take(): string | undefined {
    let next = this.#iterator.next()
    if (next.done === true) {
      this.#iterator = this.#keys.values()
      next = this.#iterator.next()
    }
    if (next.done === true) return undefined
    this.#keys.delete(next.value)
    return next.value
  }
}

/** The keys of one group: the urgent ones, and the others. */
class Group {
  readonly #urgent = new Fifo()
  readonly #others = new Fifo()

  get size(): number {
    return this.#urgent.size + this.#others.size
  }

  add(key: string, isUrgent: boolean): void {
    const keys = isUrgent ? this.#urgent : this.#others
    keys.add(key)
  }

  take(): string | undefined {
    return this.#urgent.take() ?? this.#others.take()
  }
}

export class FairQueue {
  readonly #fairnessKey: (key: string) => string
  readonly #isUrgent: (key: string) => boolean
  /** Groups with waiting keys, by fairness key. */
  readonly #groups = new Map<string, Group>()
  /** Fairness keys of these groups, in the order in which they are served. */
  #rotation = new Fifo()
  #size = 0

  /**
   * `fairnessKey` returns the group of a key, such as its logical cluster. Both functions must always return the same
   * value for a key.
   */
  constructor(fairnessKey: (key: string) => string, isUrgent: (key: string) => boolean = () => false) {
    this.#fairnessKey = fairnessKey
    this.#isUrgent = isUrgent
  }

  /** Number of waiting keys. */
  get size(): number {
    return this.#size
  }

  /** Does nothing for a key that waits already. */
  add(key: string): void {
    const groupKey = this.#fairnessKey(key)
    let group = this.#groups.get(groupKey)
    if (group === undefined) {
      this.#groups.set(groupKey, (group = new Group()))
      this.#rotation.add(groupKey)
    }
    this.#size -= group.size
    group.add(key, this.#isUrgent(key))
    this.#size += group.size
  }

  /** Removes and returns the next key; undefined if none waits. */
  take(): string | undefined {
    const groupKey = this.#rotation.take()
    const group = groupKey === undefined ? undefined : this.#groups.get(groupKey)
    if (groupKey === undefined || group === undefined) return undefined
    const key = group.take()
    this.#size--
    if (group.size > 0) this.#rotation.add(groupKey)
    else this.#groups.delete(groupKey)
    return key
  }

  clear(): void {
    this.#groups.clear()
    this.#rotation = new Fifo()
    this.#size = 0
  }
}
