// The tree of logical clusters: each names its parent. The chain of parents is walked by name at the time of a request:
// it is short, and a change of one LogicalCluster costs nothing for those below it.
import { rootClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { tryQuantity } from '#apimachinery/quantity/index.ts'
import { chainOf, type LogicalCluster as LogicalClusterObject } from '#crds/index.ts'
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
export function ancestryOf(cluster: Pick<LogicalCluster, 'name' | 'parent'>, directory: Names): Ancestry {
  if (cluster.parent === undefined) return withoutParent
  return chainOf(cluster, (name) => (name === rootClusterName ? undefined : directory.byName(name as ClusterName)))
}

/** The names from the top of the tree to the logical cluster, joined by colons. */
export function pathOf(cluster: Pick<LogicalCluster, 'name' | 'parent'>, directory: Names): string {
  if (cluster.parent === undefined) return cluster.name
  const { ancestors } = ancestryOf(cluster, directory)
  return [...ancestors.map(({ name }) => name).reverse(), cluster.name].join(':')
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
  cpu,
  memory,
  ...others
}: NonNullable<DeepReadonly<LogicalClusterObject['spec']> & object>['limits'] & object): SubtreeLimits {
  return {
    ...others,
    ...amountOf('storage', storage, 1),
    ...amountOf('cpu', cpu, 1000),
    ...amountOf('memory', memory, 1),
  }
}

function amountOf<Name extends keyof SubtreeLimits>(
  name: Name,
  text: string | undefined,
  scale: number,
): Pick<SubtreeLimits, Name> | undefined {
  const quantity = text === undefined ? undefined : tryQuantity(text)
  if (quantity === undefined) return undefined
  return { [name]: Number((quantity.nanos * BigInt(scale)) / 1_000_000_000n) } as Pick<SubtreeLimits, Name>
}
