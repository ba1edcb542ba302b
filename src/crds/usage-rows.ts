// Rows of usage, by hour and logical cluster, for bills. Columns whose names end with `Seconds` are amounts times
// seconds: divided by 3600, they are amounts times hours.

/** What a logical cluster used in an hour, as far as one process knows. */
export interface UsageRow {
  /** The start of the hour, RFC 3339. */
  readonly hour: string
  readonly id: string
  readonly name: string
  /** Requests of users, watches among them. */
  requests: number
  /** Seconds of open watches, all together. */
  watchSeconds: number
  /** Stored objects, times the seconds that they were stored. */
  objectSeconds: number
  byteSeconds: number
  /** The CPUs and the bytes of memory that the pods of placed workloads request, and these pods, each times seconds. */
  cpuSeconds: number
  memoryByteSeconds: number
  podSeconds: number
}

/** The columns of a row that are summed. */
export const usageSums = [
  'requests',
  'watchSeconds',
  'objectSeconds',
  'byteSeconds',
  'cpuSeconds',
  'memoryByteSeconds',
  'podSeconds',
] as const
export type UsageSum = (typeof usageSums)[number]

/** Where rows are kept. Each writer has its own rows, and a save replaces all that it has of the hour. */
export interface UsageHistory {
  /** The rows that this writer saved for an hour; empty if there are none. */
  own(hour: string, signal: AbortSignal): Promise<readonly UsageRow[]>
  save(hour: string, rows: readonly UsageRow[], signal: AbortSignal): Promise<void>
  /** The rows of these logical clusters from this hour on, of all writers and in any order. */
  of(ids: ReadonlySet<string>, hour: string, signal: AbortSignal): Promise<readonly UsageRow[]>
}

export const hourMs = 3_600_000

/** The hour of a time in Unix milliseconds. */
export function hourOf(ms: number): string {
  return `${new Date(ms - (ms % hourMs)).toISOString().slice(0, 19)}Z`
}

export function newUsageRow({ hour, id, name }: Pick<UsageRow, 'hour' | 'id' | 'name'>): UsageRow {
  const [requests, watchSeconds, objectSeconds, byteSeconds] = [0, 0, 0, 0]
  return {
    hour,
    id,
    name,
    requests,
    watchSeconds,
    objectSeconds,
    byteSeconds,
    cpuSeconds: 0,
    memoryByteSeconds: 0,
    podSeconds: 0,
  }
}

/** One row for each hour and logical cluster, by hour, then by name. */
export function mergeUsageRows(rows: Iterable<UsageRow>): UsageRow[] {
  const merged = new Map<string, UsageRow>()
  for (const row of rows) {
    const key = `${row.hour} ${row.id}`
    const sum = merged.get(key)
    if (sum === undefined) merged.set(key, { ...row })
    else for (const column of usageSums) sum[column] += row[column]
  }
  return [...merged.values()].sort((a, b) => compare(a.hour, b.hour) || compare(a.name, b.name) || compare(a.id, b.id))
}

/** Rows as lines of fields with tabs between them. */
export function usageRowsText(rows: Iterable<UsageRow>): string {
  let text = ''
  for (const row of rows) {
    const sums = usageSums.map((sum) => String(Number(row[sum].toFixed(3))))
    text += `${[row.hour, row.id, row.name, ...sums].join('\t')}\n`
  }
  return text
}

/**
 * The rows of a text from `usageRowsText`; lines that are damaged are left out. `ids`: only these logical clusters, and
 * the lines of all others make no objects.
 */
export function parseUsageRows(text: string, ids?: ReadonlySet<string>): UsageRow[] {
  const rows: UsageRow[] = []
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    const line = text.slice(at, end)
    at = end + 1
    const row = ids === undefined || ids.has(idIn(line)) ? rowIn(line) : undefined
    if (row !== undefined) rows.push(row)
  }
  return rows
}

function idIn(line: string): string {
  const begin = line.indexOf('\t') + 1
  return line.slice(begin, line.indexOf('\t', begin))
}

function rowIn(line: string): UsageRow | undefined {
  const [hour = '', id = '', name = '', ...texts] = line.split('\t')
  const sums = texts.map(Number)
  if (name === '' || sums.length < usageSums.length || !sums.every(Number.isFinite)) return undefined
  const row = newUsageRow({ hour, id, name })
  for (const [index, column] of usageSums.entries()) row[column] = sums[index] ?? 0
  return row
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
