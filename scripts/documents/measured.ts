// The numbers of the sizing page, from the newest results in bench/results.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from './documents.ts'
import type { Measured } from './sizing.ts'

interface Saved {
  readonly date: string
  readonly machine: string
  readonly commit: string
  readonly results: Readonly<Record<string, Readonly<Record<string, number>>>>
}

export interface MeasuredWithSource extends Measured {
  /** The date, the commit and the machine of the run that the numbers are from, as a text for readers. */
  readonly source: string
}

/** Rows of the benchmarks that the numbers are from. */
const rows = ['start', 'tenthousand', 'restart', 'idle', 'ratios']

/** Reads the numbers of the newest run that has all rows. Throws if there is none. */
export function readMeasured(): MeasuredWithSource {
  const files = globSync('*.json', { cwd: join(projectRoot, 'bench/results') }).sort()
  const runs = files.map((name) => JSON.parse(readFileSync(join(projectRoot, 'bench/results', name), 'utf8')) as Saved)
  const newest = runs
    .sort((one, other) => one.date.localeCompare(other.date))
    .findLast(({ results }) => rows.every((row) => results[row] !== undefined))
  if (newest === undefined) throw new Error(`no file in bench/results has all of ${rows.join(', ')}`)
  const number = (row: string, name: string): number => {
    const value = newest.results[row]?.[name]
    if (value === undefined) throw new Error(`bench/results of ${newest.date} has no "${name}" in row ${row}`)
    return value
  }
  const loaded = number('restart', 'MiB with 300 loaded') - number('restart', 'MiB at start')
  const created = number('tenthousand', 'MiB at the last one') - number('tenthousand', 'MiB before')
  return {
    idleMiB: number('start', 'idle MiB'),
    perClusterKiB: rounded((created * 1024) / 10_000),
    perObjectKiB: rounded((loaded * 1024) / 300_000),
    perWatchKiB: number('idle', 'kcp: KiB per watch'),
    cpuPerThousandReads: rounded(1000 / number('ratios', 'GET: kcp requests/CPU-s')),
    cpuPerThousandWrites: rounded(1000 / number('ratios', 'create: kcp requests/CPU-s')),
    source: `${newest.date.slice(0, 10)}, commit ${newest.commit}, ${newest.machine}`,
  }
}

function rounded(value: number): number {
  return Number(value.toPrecision(3))
}
