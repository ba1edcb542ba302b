// How many copies each member has, kept as they come and go.

export class CopyCount {
  readonly #members = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#members.size === 0
  }

  of(member: string): number {
    return this.#members.get(member) ?? 0
  }

  /** One workload has its copies in other members than before. */
  replace(before: readonly string[], after: readonly string[]): void {
    for (const member of after) this.#members.set(member, this.of(member) + 1)
    for (const member of before) {
      const left = this.of(member) - 1
      if (left > 0) this.#members.set(member, left)
      else this.#members.delete(member)
    }
  }

  /** Members with any copy but these, one in each. */
  without(own: readonly string[]): string[] {
    const ours = new Set(own)
    return [...this.#members].filter(([member, count]) => count > (ours.has(member) ? 1 : 0)).map(([member]) => member)
  }
}
