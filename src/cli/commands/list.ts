// `kcp list`: the logical clusters of an installation.
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { ageText } from '#explain/index.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { objectsText, type OutputFormat } from './output.ts'

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
  return objectsText(items, format, { headings, narrow: 4, cells: (item) => cellsOf(item, nowMs) })
}

const headings = ['NAME', 'READY', 'REASON', 'AGE', 'ID', 'URL']

function cellsOf({ metadata, status }: LogicalCluster, nowMs: number): string[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const age = ageText(nowMs - Date.parse(metadata.creationTimestamp ?? ''))
  return [
    ...[metadata.name, ready?.status ?? 'Unknown', ready?.reason ?? '', age],
    ...[status?.id ?? '', status?.url ?? status?.directURL ?? ''],
  ]
}
