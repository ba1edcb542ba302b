// `kcp tree`: the logical clusters of an installation below their parents.
import type { DeepReadonly } from '#client/index.ts'
import { chainOf, logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { columns, documentText } from './output.ts'

interface Flags extends InstallationFlags {
  readonly output: 'text' | 'json' | 'yaml'
}

/** A logical cluster with all below it. */
interface Node {
  readonly name: string
  readonly ready: string
  readonly limits?: Readonly<Record<string, unknown>>
  /** Why its parents are invalid. */
  readonly problem?: string
  readonly children: readonly Node[]
}

/** Runs the command. `top`: only this logical cluster and all below it. */
export async function run(top: string | undefined, { output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { items } = await installation.clusters.list<LogicalCluster>(logicalClusters, { signal })
  const nodes = treeOf(items, top)
  if (top !== undefined && nodes.length === 0)
    throw new ExitError(`there is no LogicalCluster "${top}"; kcp list lists them`)
  process.stdout.write(output === 'text' ? treeText(nodes) : documentText(nodes, output))
  if (items.length === 0) console.error('no logical cluster exists yet; the first one:  kcp create NAME')
}

/** The trees, by name. A logical cluster whose parents are invalid is at the top, with the reason. */
export function treeOf(items: readonly DeepReadonly<LogicalCluster>[], top?: string): readonly Node[] {
  const byName = new Map(items.map((item) => [item.metadata.name, item]))
  const find = (name: string) => {
    const found = byName.get(name)
    return found && { name, parent: found.spec?.parentRef?.name, limits: found.spec?.limits }
  }
  const problems = new Map<string, string>()
  const below = Map.groupBy(items, ({ metadata: { name }, spec }) => {
    const { problem } = chainOf({ name, parent: spec?.parentRef?.name }, find)
    if (problem !== undefined) problems.set(name, problem)
    return problem === undefined ? (spec?.parentRef?.name ?? '') : ''
  })
  const nodesIn = (of: readonly DeepReadonly<LogicalCluster>[]): Node[] =>
    [...of].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).map(nodeOf)
  const nodeOf = ({ metadata: { name }, spec, status }: DeepReadonly<LogicalCluster>): Node => {
    const problem = problems.get(name)
    return {
      name,
      ready: status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'Unknown',
      ...(spec?.limits !== undefined && { limits: spec.limits }),
      ...(problem !== undefined && { problem }),
      children: nodesIn(below.get(name) ?? []),
    }
  }
  return nodesIn(top === undefined ? (below.get('') ?? []) : items.filter(({ metadata }) => metadata.name === top))
}

/** The trees as a table with lines, with a line feed at its end; empty without a tree. */
export function treeText(nodes: readonly Node[]): string {
  const rows: string[][] = []
  const add = ({ name, ready, limits = {}, problem = '', children }: Node, first: string, rest: string): void => {
    const shown = Object.entries(limits).map(([key, value]) => `${key}=${String(value)}`)
    rows.push([`${first}${name}`, ready, shown.join(','), problem])
    for (const [i, child] of children.entries()) {
      const isLast = i === children.length - 1
      add(child, `${rest}${isLast ? '└─ ' : '├─ '}`, `${rest}${isLast ? '   ' : '│  '}`)
    }
  }
  for (const node of nodes) add(node, '', '')
  return rows.length === 0 ? '' : columns([['NAME', 'READY', 'LIMITS', 'PROBLEM'], ...rows])
}
