// The check of a write of a LogicalCluster against the tree: its parent, its depth, its limits and those above it.
import { rootClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import { AnnouncedTree, type Place } from './announced-tree.ts'
import {
  budgetDimensions,
  carvedLimits,
  type BudgetDimension,
  type CarvedLimit,
  type SubtreeBudgets,
} from './subtree-budgets.ts'

/** Why a LogicalCluster cannot be written, and the field that the reason is about. */
export interface TreeProblem {
  readonly field: 'spec.parentRef.name' | `spec.limits.${CarvedLimit | 'children'}`
  readonly message: string
}

export interface TreeCheck {
  /**
   * Why the LogicalCluster cannot be at this place; undefined if it can. It then counts as written. `dryRun`: it does
   * not.
   */
  place(next: Place, options: { readonly dryRun: boolean }): Promise<TreeProblem | undefined>
  /** Why the LogicalCluster cannot be deleted; undefined if it can. */
  removal(name: ClusterName): string | undefined
}

export function createTreeCheck(directory: ClusterDirectory, budgets: SubtreeBudgets, now: () => number): TreeCheck {
  const tree = new AnnouncedTree(directory, now)
  return {
    async place(next, { dryRun }) {
      if (isUnchanged(next, directory)) return undefined
      const found = placeProblem(next, tree)
      if (found !== undefined) return found
      // Reads the use of logical clusters that are not in memory. The check itself does not wait.
      for (const dimension of budgetDimensions) await learn(next, dimension, { tree, budgets })
      const again = placeProblem(next, tree) ?? limitProblem(next, { tree, budgets })
      if (again === undefined && !dryRun) tree.announce(next)
      return again
    },
    removal(name) {
      const children: string[] = []
      for (const child of tree.childrenOf(name)) {
        if (children.length === maxNamed) return `it has children: ${children.join(', ')} and more; ${remedy}`
        children.push(child.name)
      }
      return children.length === 0 ? undefined : `it has children: ${children.join(', ')}; ${remedy}`
    },
  }
}

const maxNamed = 5
const remedy = 'delete them, or give them another parent, first'

function isUnchanged(next: Place, directory: ClusterDirectory): boolean {
  const known = directory.byName(next.name)
  if (known === undefined) return next.parent === undefined && next.limits === undefined
  const { parent, limits } = known
  return parent === next.parent && JSON.stringify(limits ?? {}) === JSON.stringify(next.limits ?? {})
}

/** A view of the tree in which `next` is written already. */
function treeWith(next: Place, tree: AnnouncedTree): Pick<ClusterDirectory, 'byName'> {
  return {
    byName: (name) => {
      const known = tree.byName(name)
      if (name !== next.name || known === undefined) return known
      const { parent: _parent, limits: _limits, ...rest } = known
      return { ...rest, ...next }
    },
  }
}

function placeProblem(next: Place, tree: AnnouncedTree): TreeProblem | undefined {
  const problem = (message: string): TreeProblem => ({ field: 'spec.parentRef.name', message })
  const view = treeWith(next, tree)
  if (next.parent !== undefined) {
    if (next.parent === rootClusterName) return problem('logical cluster "root" has no children')
    if (tree.byName(next.parent)?.deleting === true) return problem(`logical cluster "${next.parent}" is being deleted`)
    const own = ancestryOf(next, view)
    if (own.problem !== undefined) return problem(own.problem)
  }
  const isBelow: ClusterName[] = []
  for (const { name, parent } of tree.below(next.name)) {
    isBelow.push(name)
    const { problem: found } = ancestryOf({ name, ...(parent === undefined ? {} : { parent }) }, view)
    if (found !== undefined) return problem(`below it, of logical cluster "${name}": ${found}`)
  }
  return childrenProblem(next, isBelow.length, tree)
}

/** Counts the logical clusters below each ancestor that limits them. */
function childrenProblem(next: Place, below: number, tree: AnnouncedTree): TreeProblem | undefined {
  const allowed = next.limits?.children
  if (allowed !== undefined && below > allowed)
    return {
      field: 'spec.limits.children',
      message: `there are ${String(below)} logical clusters below it, more than ${String(allowed)}`,
    }
  for (const { name, limits } of ancestryOf(next, tree).ancestors) {
    if (limits?.children === undefined) continue
    let others = 0
    let isThere = false
    for (const { name: one } of tree.below(name)) {
      others++
      isThere ||= one === next.name
    }
    if (!isThere && others + below + 1 > limits.children)
      return {
        field: 'spec.parentRef.name',
        message: `exceeded quota: logical cluster "${name}" may have ${String(limits.children)} logical clusters below it, and has ${String(others)}`,
      }
  }
  return undefined
}

interface Limits {
  readonly tree: AnnouncedTree
  readonly budgets: SubtreeBudgets
}

async function learn(next: Place, dimension: BudgetDimension, { tree, budgets }: Limits): Promise<void> {
  const owner = ownerAbove(next, dimension, tree)
  if (owner === undefined && next.limits?.[dimension] === undefined) return
  await budgets.used(next.name, dimension, tree)
  if (owner !== undefined) await budgets.used(owner.name, dimension, tree)
}

function ownerAbove(next: Place, dimension: CarvedLimit, tree: AnnouncedTree) {
  return ancestryOf(next, tree).ancestors.find(({ limits }) => limits?.[dimension] !== undefined)
}

function limitProblem(next: Place, { tree, budgets }: Limits): TreeProblem | undefined {
  for (const dimension of carvedLimits) {
    const field = `spec.limits.${dimension}` as const
    const limit = next.limits?.[dimension]
    const own = limit === undefined ? 0 : budgets.usedNow(next.name, dimension, tree)
    if (limit !== undefined && own > limit)
      return {
        field,
        message: `it and all below it use or set aside ${String(own)} already, more than ${String(limit)}`,
      }
    const owner = ownerAbove(next, dimension, tree)
    if (owner === undefined) continue
    const taken = limit ?? budgets.usedNow(next.name, dimension, tree)
    const rest =
      (owner.limits?.[dimension] ?? 0) -
      (dimension === 'requestsPerSecond' ? leastRate : 0) -
      budgets.usedNow(owner.name, dimension, tree) +
      takenNow(next.name, owner.name, dimension, { tree, budgets })
    if (taken > 0 && taken > rest)
      return {
        field: limit === undefined ? 'spec.parentRef.name' : field,
        message: `exceeded quota: ${dimension} ${String(taken)} is more than the ${String(Math.max(0, rest))} that are left of the limit of logical cluster "${owner.name}"`,
      }
  }
  return undefined
}

/** Requests per second that a logical cluster keeps for itself: without any, its users could not change this again. */
const leastRate = 1

/** What the logical cluster, as it is now, takes of the limit of `owner`. */
function takenNow(name: ClusterName, owner: ClusterName, dimension: CarvedLimit, { tree, budgets }: Limits): number {
  const now = tree.byName(name)
  if (now === undefined || ownerAbove(now, dimension, tree)?.name !== owner) return 0
  return now.limits?.[dimension] ?? budgets.usedNow(name, dimension, tree)
}
