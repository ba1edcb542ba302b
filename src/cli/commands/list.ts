// `kcp list`: the logical clusters of an installation.
import { stringify } from 'yaml'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { ageText } from '#explain/index.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

export type OutputFormat = 'table' | 'wide' | 'name' | 'json' | 'yaml'

interface Flags extends InstallationFlags {
  readonly output: OutputFormat
}

/** Runs the command. */
export async function run({ output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { items } = await installation.clusters.list<LogicalCluster>(logicalClusters, { signal })
  process.stdout.write(listText(items, output, Date.now()))
  if (items.length === 0) console.error('no logical cluster exists yet; the first one:  kcp create NAME')
}

/** The list in a format, with a line feed at its end. Empty for a table without rows. */
export function listText(items: readonly LogicalCluster[], format: OutputFormat, nowMs: number): string {
  const list = { apiVersion: 'v1', kind: 'List', items }
  if (format === 'json') return `${JSON.stringify(list, null, 2)}\n`
  if (format === 'yaml') return stringify(list, { aliasDuplicateObjects: false, lineWidth: 0 })
  if (format === 'name') return items.map(({ metadata }) => `logicalcluster.kcp.dev/${metadata.name}\n`).join('')
  if (items.length === 0) return ''
  const isWide = format === 'wide'
  const rows = items.map((item) => cellsOf(item, nowMs))
  return columns([headings, ...rows].map((cells) => (isWide ? cells : cells.slice(0, narrow))))
}

const headings = ['NAME', 'READY', 'REASON', 'AGE', 'ID', 'URL']
/** Number of columns without `-o wide`. */
const narrow = 4

function cellsOf({ metadata, status }: LogicalCluster, nowMs: number): string[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const age = ageText(nowMs - Date.parse(metadata.creationTimestamp ?? ''))
  return [
    ...[metadata.name, ready?.status ?? 'Unknown', ready?.reason ?? '', age],
    ...[status?.id ?? '', status?.url ?? status?.directURL ?? ''],
  ]
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0))) ?? []
  const lineOf = (cells: readonly string[]): string =>
    cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')
  return rows.map((cells) => `${lineOf(cells).trimEnd()}\n`).join('')
}
