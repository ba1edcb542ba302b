// The chain of parents of a logical cluster, by name. The server walks it at the time of a request, the operator for the
// status.
import { defaultLevelsBelow, maxLevelsBelow } from './logical-cluster.ts'

/** A logical cluster in the tree. */
export interface TreePlace {
  readonly name: string
  /** The name of the parent. */
  readonly parent?: string | undefined
  readonly limits?: { readonly depth?: number } | undefined
}

export interface Chain<T> {
  /** The ancestors, the parent first; empty if there is a problem. */
  readonly ancestors: readonly T[]
  /** Why the chain is invalid. */
  readonly problem?: string
}

/** The chain of parents. `find` returns undefined for names that cannot be a parent. */
export function chainOf<T extends TreePlace>(
  { name, parent }: Pick<TreePlace, 'name' | 'parent'>,
  find: (name: string) => T | undefined,
): Chain<T> {
  const ancestors: T[] = []
  for (let next = parent; next !== undefined;) {
    const above = find(next)
    if (above === undefined) return broken(`logical cluster "${next}", which is named as parent, does not exist`)
    if (next === name || ancestors.some((one) => one.name === next))
      return broken(`its parents form a cycle: ${pathText(name, ancestors, next)}`)
    ancestors.push(above)
    if (ancestors.length > maxLevelsBelow) return broken(`it has more than ${String(maxLevelsBelow)} ancestors`)
    next = above.parent
  }
  const problem = depthProblem(ancestors)
  return problem === undefined ? { ancestors } : broken(problem)
}

/** Why the lowest logical cluster below these ancestors is too deep in the tree; undefined if it is not. */
function depthProblem(ancestors: readonly TreePlace[]): string | undefined {
  for (const [i, { name, limits, parent }] of ancestors.entries()) {
    const levels = limits?.depth ?? (parent === undefined ? defaultLevelsBelow : maxLevelsBelow)
    if (i + 1 > levels)
      return `logical cluster "${name}" may have ${String(levels)} levels below it, and this is level ${String(i + 1)}`
  }
  return undefined
}

function broken<T>(problem: string): Chain<T> {
  return { ancestors: [], problem }
}

function pathText(name: string, ancestors: readonly TreePlace[], last: string): string {
  return [name, ...ancestors.map((above) => above.name), last].map((one) => `"${one}"`).join(' is below ')
}
