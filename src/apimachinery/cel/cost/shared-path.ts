// Paths of nodes while costs are estimated. cel-go builds them by appending to Go slices, so paths that continue the
// same path may share memory and the later one overwrites the earlier. Which rules a server accepts depends on the
// estimates, so paths share here as they do there.

export class SharedPath {
  static readonly none = new SharedPath([], 0, 0)
  readonly length: number
  readonly #memory: string[]
  readonly #capacity: number

  private constructor(memory: string[], length: number, capacity: number) {
    this.#memory = memory
    this.length = length
    this.#capacity = capacity
  }

  /** The path of a variable. */
  static of(variable: string): SharedPath {
    return new SharedPath([variable], 1, 1)
  }

  /** The path that goes one step further. */
  to(name: string): SharedPath {
    const fits = this.length < this.#capacity
    const memory = fits ? this.#memory : this.#memory.slice(0, this.length)
    memory[this.length] = name
    return new SharedPath(memory, this.length + 1, fits ? this.#capacity : Math.max(1, this.#capacity * 2))
  }

  /** The path without what shares its memory. */
  copy(): SharedPath {
    return new SharedPath(this.names(), this.length, this.length)
  }

  /** The names as they are now, from the variable down. */
  names(): string[] {
    return this.#memory.slice(0, this.length)
  }
}
