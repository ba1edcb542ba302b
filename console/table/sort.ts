// The order of rows by a column: times by time, numbers and quantities by value, texts by text.
import { cellText, type ColumnDefinition, type Row } from './rows.ts'

export interface SortOrder {
  /** Name of a column, or `Cluster`, `Namespace`. */
  readonly column: string
  readonly descending: boolean
}

/** The rows in order. Rows that are equal by the column follow each other by cluster, namespace and name. */
export function sorted(rows: Row[], columns: readonly ColumnDefinition[], order: SortOrder | undefined): Row[] {
  if (order === undefined) return rows.sort(byIdentity)
  const keyOf = sortKey(order.column, columns)
  const keyed = rows.map((row) => ({ row, key: keyOf(row) }))
  const sign = order.descending ? -1 : 1
  keyed.sort((a, b) => sign * compareKeys(a.key, b.key) || byIdentity(a.row, b.row))
  return keyed.map(({ row }) => row)
}

type Key = number | string

function compareKeys(a: Key, b: Key): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'number') return -1
  if (typeof b === 'number') return 1
  return a < b ? -1 : a > b ? 1 : 0
}

function byIdentity(a: Row, b: Row): number {
  return compareKeys(a.cluster, b.cluster) || compareKeys(a.namespace, b.namespace) || compareKeys(a.name, b.name)
}

/** Times are compared as times, and an age grows while the creation time stays. */
function sortKey(column: string, columns: readonly ColumnDefinition[]): (row: Row) => Key {
  if (column === 'Cluster') return ({ cluster }) => cluster
  if (column === 'Namespace') return ({ namespace }) => namespace
  const index = columns.findIndex(({ name }) => name === column)
  if (isAgeColumn(columns[index])) return ({ created }) => (Number.isNaN(created) ? Infinity : -created)
  if (isDurationColumn(columns[index])) return ({ cells }) => durationOf(cellText(cells[index]))
  return ({ cells }) => cellKey(cells[index])
}

export function isAgeColumn(column: ColumnDefinition | undefined): boolean {
  return column?.name === 'Age'
}

function isDurationColumn(column: ColumnDefinition | undefined): boolean {
  return (
    column !== undefined &&
    (/^(Last Seen|First Seen|Duration|Last Schedule|Since)$/.test(column.name) || column.format === 'date')
  )
}

/** Numbers before texts; `2/3` and `5 (3m ago)` are numbers. */
function cellKey(cell: unknown): Key {
  if (typeof cell === 'number') return cell
  const text = cellText(cell)
  const number = quantityOf(text)
  return Number.isNaN(number) ? text.toLowerCase() : number
}

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** The value of a number or quantity at the beginning of a text; NaN if there is none, as in an address or a name. */
export function quantityOf(text: string): number {
  const match = /^(-?\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|[mkMGT]|%)?(?:\s|\/|$)/i.exec(text)
  if (match === null) return NaN
  const [, digits = '', suffix = ''] = match
  const known = Object.keys(suffixes).find((name) => name === suffix || name.toLowerCase() === suffix.toLowerCase())
  return Number(digits) * (suffixes[suffix] ?? suffixes[known ?? ''] ?? 1)
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, y: 31_536_000 }

/** Seconds of a duration in the words of kubectl, such as `3d4h`; Infinity if there is none. */
export function durationOf(text: string): number {
  const parts = [...text.matchAll(/(\d+)([smhdy])/g)]
  if (parts.length === 0) return Infinity
  return parts.reduce((sum, [, count = '0', unit = 's']) => sum + Number(count) * (seconds[unit] ?? 1), 0)
}
