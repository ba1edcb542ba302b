// The tree of logical clusters: each names its parent. The chain of parents is walked by name at the time of a request:
// it is short, and a change of one LogicalCluster costs nothing for those below it.
import { rootClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { tryQuantity } from '#apimachinery/quantity/index.ts'
import { defaultLevelsBelow, maxLevelsBelow, type LogicalCluster as LogicalClusterObject } from '#crds/index.ts'
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import type { ClusterDirectory, LogicalCluster, SubtreeLimits } from './logical-cluster.ts'

/** The ancestors of a logical cluster, the parent first. */
export interface Ancestry {
  /** Empty if there is a problem: nothing is inherited then. */
  readonly ancestors: readonly LogicalCluster[]
  /** Why the chain of parents is invalid; tenants cannot write then, because policies above are not known. */
  readonly problem?: string
}

type Names = Pick<ClusterDirectory, 'byName'>

const withoutParent: Ancestry = { ancestors: [] }

/** The chain of parents of a logical cluster. */
export function ancestryOf({ name, parent }: Pick<LogicalCluster, 'name' | 'parent'>, directory: Names): Ancestry {
  if (parent === undefined) return withoutParent
  const ancestors: LogicalCluster[] = []
  for (let next: ClusterName | undefined = parent; next !== undefined;) {
    const above: LogicalCluster | undefined = next === rootClusterName ? undefined : directory.byName(next)
    if (above === undefined) return broken(`logical cluster "${next}", which is named as parent, does not exist`)
    if (next === name || ancestors.includes(above))
      return broken(`its parents form a cycle: ${pathText(name, ancestors, next)}`)
    ancestors.push(above)
    if (ancestors.length > maxLevelsBelow) return broken(`it has more than ${String(maxLevelsBelow)} ancestors`)
    next = above.parent
  }
  const problem = depthProblem(ancestors)
  return problem === undefined ? { ancestors } : broken(problem)
}

/** The names from the top of the tree to the logical cluster, joined by colons. */
export function pathOf(cluster: Pick<LogicalCluster, 'name' | 'parent'>, directory: Names): string {
  if (cluster.parent === undefined) return cluster.name
  const { ancestors } = ancestryOf(cluster, directory)
  return [...ancestors.map(({ name }) => name).reverse(), cluster.name].join(':')
}

/** Why the lowest logical cluster below these ancestors is too deep in the tree; undefined if it is not. */
function depthProblem(ancestors: readonly LogicalCluster[]): string | undefined {
  for (const [i, { name, limits, parent }] of ancestors.entries()) {
    const levels = limits?.depth ?? (parent === undefined ? defaultLevelsBelow : maxLevelsBelow)
    if (i + 1 > levels)
      return `logical cluster "${name}" may have ${String(levels)} levels below it, and this is level ${String(i + 1)}`
  }
  return undefined
}

function broken(problem: string): Ancestry {
  return { ancestors: [], problem }
}

function pathText(name: ClusterName, ancestors: readonly LogicalCluster[], last: ClusterName): string {
  return [name, ...ancestors.map((above) => above.name), last].map((one) => `"${one}"`).join(' is below ')
}

/** The facts of the tree in the spec of a LogicalCluster; fields that are absent there are absent here. */
export function placeInTree(
  spec: DeepReadonly<LogicalClusterObject['spec']>,
): Pick<LogicalCluster, 'parent' | 'limits' | 'inherit'> {
  const { parentRef, limits, inherit } = spec ?? {}
  return {
    ...(parentRef?.name === undefined ? {} : { parent: parentRef.name as ClusterName }),
    ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
    ...(inherit === undefined ? {} : { inherit }),
  }
}

function limitsOf({
  storage,
  ...others
}: NonNullable<DeepReadonly<LogicalClusterObject['spec']> & object>['limits'] & object): SubtreeLimits {
  const quantity = storage === undefined ? undefined : tryQuantity(storage)
  return { ...others, ...(quantity === undefined ? {} : { storage: Number(quantity.nanos / 1_000_000_000n) }) }
}
