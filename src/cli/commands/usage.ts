// `kcp usage`: what logical clusters have used, by hour or in sum, as a table or for bills.
import { hourMs, hourOf, mergeUsageRows, usageSums, type UsageRow, type UsageSum } from '#crds/index.ts'
import { usageRowsSince } from '#cli/roles/usage-history.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { columns, documentText } from './output.ts'

export const usageFormats = ['table', 'csv', 'json', 'opencost'] as const
export type UsageFormat = (typeof usageFormats)[number]

interface Flags extends InstallationFlags {
  readonly since: string
  readonly hourly?: boolean
  readonly prices?: string
  readonly output: UsageFormat
}

/** Prices of an hour of a CPU, of a GiB of memory and of a stored GiB. */
interface Prices {
  readonly cpu: number
  readonly memory: number
  readonly storage: number
}

const GiB = 1024 ** 3

/** Runs the command. `name`: only this logical cluster. */
export async function run(
  name: string | undefined,
  { since, hourly = false, prices, output, ...flags }: Flags,
): Promise<void> {
  const [nowMs, priced] = [Date.now(), parsePrices(prices)]
  const from = hourOf(sinceMs(since, nowMs))
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const all = mergeUsageRows(await usageRowsSince(installation.clusters, from, signal))
  const rows = all.filter((row) => row.hour >= from && (name === undefined || row.name === name))
  process.stdout.write(usageText(hourly ? rows : sumRows(rows), { output, prices: priced, rows, nowMs }))
  const oldest = all[0]?.hour ?? ''
  if (rows.length === 0) console.error('there are no rows of that time yet; they are written every minute')
  else if (oldest > from)
    console.error(`the oldest rows are of ${oldest}: what was used before is not in these numbers`)
}

/** Reads a time as Unix milliseconds: a duration before now, such as 90m, 24h or 30d, or a time in RFC 3339. */
export function sinceMs(text: string, nowMs: number): number {
  const [, amount, unit] = /^(\d{1,6})(m|h|d)$/.exec(text) ?? []
  if (amount !== undefined)
    return nowMs - Number(amount) * (unit === 'm' ? 60_000 : unit === 'h' ? hourMs : 24 * hourMs)
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time))
    throw new UsageError(`"${text}" is neither a duration such as 24h or 30d, nor a time in RFC 3339`)
  return time
}

/** Parses prices such as `cpu=0.03,memory=0.004,storage=0.0001`; a price that is not given is 0. */
export function parsePrices(text: string | undefined): Prices {
  const prices = { cpu: 0, memory: 0, storage: 0 }
  for (const part of text === undefined ? [] : text.split(',')) {
    const [, what, price] = /^(cpu|memory|storage)=(\d+(?:[.]\d+)?)$/.exec(part) ?? []
    if (what === undefined) throw new UsageError(`"${part}" is not cpu=PRICE, memory=PRICE or storage=PRICE`)
    prices[what as keyof Prices] = Number(price)
  }
  return prices
}

/** One row for each logical cluster; `hour` is the first hour that was summed. */
function sumRows(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>()
  for (const row of rows) {
    const sum = sums.get(row.id)
    if (sum === undefined) sums.set(row.id, { ...row })
    else for (const column of usageSums) sum[column] += row[column]
  }
  return [...sums.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1))
}

interface Shown {
  readonly output: UsageFormat
  readonly prices: Prices
  /** All rows, by hour. */
  readonly rows: readonly UsageRow[]
  readonly nowMs: number
}

/** Rows in a format, with a line feed at the end. */
export function usageText(shown: readonly UsageRow[], { output, prices, rows, nowMs }: Shown): string {
  switch (output) {
    case 'json':
      return documentText({ items: shown.map(itemOf) }, 'json')
    case 'csv':
      return csvText(shown)
    case 'opencost':
      return documentText(openCostOf(rows, prices, nowMs), 'json')
    case 'table':
      return shown.length === 0 ? '' : columns([headings, ...shown.map(cellsOf)])
  }
}

/** For each sum in exports, its name there, its column, and the number by which it is divided: 3600 makes hours. */
const units: readonly (readonly [name: string, sum: UsageSum, seconds: number])[] = [
  ['requests', 'requests', 1],
  ['watchHours', 'watchSeconds', 3600],
  ['objectHours', 'objectSeconds', 3600],
  ['byteHours', 'byteSeconds', 3600],
  ['cpuCoreHours', 'cpuSeconds', 3600],
  ['memoryByteHours', 'memoryByteSeconds', 3600],
  ['podHours', 'podSeconds', 3600],
]

function itemOf(row: UsageRow): object {
  const { hour, id, name } = row
  return {
    hour,
    name,
    id,
    ...Object.fromEntries(units.map(([unit, sum, seconds]) => [unit, inUnits(row[sum], seconds)])),
  }
}

function inUnits(sum: number, seconds: number): number {
  return Number((sum / seconds).toFixed(6))
}

/** RFC 4180. Names and ids have no character that must be quoted. */
function csvText(rows: readonly UsageRow[]): string {
  const lines = rows.map((row) =>
    [row.hour, row.name, row.id, ...units.map(([, sum, seconds]) => inUnits(row[sum], seconds))].join(','),
  )
  return [['hour', 'name', 'id', ...units.map(([unit]) => unit)].join(','), ...lines].join('\r\n') + '\r\n'
}

const headings = ['HOUR', 'NAME', 'REQUESTS', 'WATCH-H', 'OBJECT-H', 'GIB-H', 'CPU-H', 'MEMORY-GIB-H', 'POD-H']

function cellsOf(row: UsageRow): string[] {
  const hours = (seconds: number, scale = 1): string => (seconds / 3600 / scale).toFixed(3)
  return [
    row.hour,
    row.name,
    String(row.requests),
    hours(row.watchSeconds),
    hours(row.objectSeconds),
    hours(row.byteSeconds, GiB),
    hours(row.cpuSeconds),
    hours(row.memoryByteSeconds, GiB),
    hours(row.podSeconds),
  ]
}

/**
 * Allocations in the form of OpenCost's `/allocation?step=1h`: one set for each hour, by name. What is stored in the
 * logical cluster is under pvByteHours. https://opencost.io/docs/integrations/api
 */
function openCostOf(rows: readonly UsageRow[], prices: Prices, nowMs: number): object {
  const byHour = Map.groupBy(rows, ({ hour }) => hour)
  return {
    code: 200,
    status: 'success',
    data: [...byHour].map(([hour, ofHour]) =>
      Object.fromEntries(ofHour.map((row) => [row.name, allocationOf(row, hour, prices, nowMs)])),
    ),
  }
}

function allocationOf(row: UsageRow, hour: string, prices: Prices, nowMs: number): object {
  const start = Date.parse(hour)
  const minutes = Math.min(60, Math.max(1, (nowMs - start) / 60_000))
  const end = new Date(start + hourMs).toISOString().replace('.000', '')
  const [cpuCoreHours, ramByteHours, pvByteHours] = [row.cpuSeconds, row.memoryByteSeconds, row.byteSeconds].map(
    (sum) => inUnits(sum, 3600),
  ) as [number, number, number]
  const average = (hours: number): number => inUnits(hours * 60, minutes)
  const cpuCost = cpuCoreHours * prices.cpu
  const ramCost = (ramByteHours / GiB) * prices.memory
  const pvCost = (pvByteHours / GiB) * prices.storage
  return {
    name: row.name,
    properties: { cluster: row.name, labels: { 'kcp.dev/logical-cluster-id': row.id } },
    window: { start: hour, end },
    start: hour,
    end,
    minutes: Number(minutes.toFixed(3)),
    cpuCores: average(cpuCoreHours),
    cpuCoreRequestAverage: average(cpuCoreHours),
    cpuCoreHours,
    cpuCost,
    ramBytes: average(ramByteHours),
    ramByteRequestAverage: average(ramByteHours),
    ramByteHours,
    ramCost,
    pvBytes: average(pvByteHours),
    pvByteHours,
    pvCost,
    totalCost: cpuCost + ramCost + pvCost,
  }
}
