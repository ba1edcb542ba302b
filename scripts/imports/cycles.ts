// Cycles of a directed graph, by Tarjan's algorithm.

export type Edge = readonly [from: string, to: string]

/** The strongly connected components of more than one node, each sorted by name. Linear in the number of edges. */
export function cyclesOf(edges: readonly Edge[]): readonly (readonly string[])[] {
  const targets = new Map<string, Set<string>>()
  for (const [from, to] of edges) {
    const of = targets.get(from) ?? new Set<string>()
    targets.set(from, of.add(to))
  }
  const search = new Search(targets)
  for (const node of targets.keys()) search.visit(node)
  return search.cycles
}

class Search {
  readonly cycles: (readonly string[])[] = []
  readonly #targets: ReadonlyMap<string, ReadonlySet<string>>
  readonly #index = new Map<string, number>()
  readonly #stack: string[] = []
  readonly #onStack = new Set<string>()

  constructor(targets: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#targets = targets
  }

  /** Returns the lowest index that is reached from this node and still on the stack. */
  visit(node: string): number {
    const known = this.#index.get(node)
    if (known !== undefined) return this.#onStack.has(node) ? known : Infinity
    const index = this.#index.size
    this.#index.set(node, index)
    this.#stack.push(node)
    this.#onStack.add(node)
    let lowest = index
    for (const target of this.#targets.get(node) ?? []) lowest = Math.min(lowest, this.visit(target))
    if (lowest === index) this.#close(node)
    return lowest
  }

  #close(node: string): void {
    const members = this.#stack.splice(this.#stack.indexOf(node))
    for (const member of members) this.#onStack.delete(member)
    if (members.length > 1) this.cycles.push(members.sort())
  }
}
