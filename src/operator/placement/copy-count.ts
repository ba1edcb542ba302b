// The number of copies on each member, updated with every change of a workload.

export class CopyCount {
  readonly #members = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#members.size === 0
  }

  of(member: string): number {
    return this.#members.get(member) ?? 0
  }

  /** The copies of one workload are on the members `after` instead of `before`. */
  replace(before: readonly string[], after: readonly string[]): void {
    for (const member of after) this.#members.set(member, this.of(member) + 1)
    for (const member of before) {
      const left = this.of(member) - 1
      if (left > 0) this.#members.set(member, left)
      else this.#members.delete(member)
    }
  }

  /** Members that have copies besides one copy on each of `own`. */
  without(own: readonly string[]): string[] {
    const ours = new Set(own)
    return [...this.#members].filter(([member, count]) => count > (ours.has(member) ? 1 : 0)).map(([member]) => member)
  }
}
