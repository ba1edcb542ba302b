// How commands print objects, lists and tables: one form for all commands.
import { stringify } from 'yaml'
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'

export type OutputFormat = 'table' | 'wide' | 'name' | 'json' | 'yaml'

/** Columns for people; those after `narrow` are printed with `-o wide` only. */
export interface Columns<T> {
  readonly headings: readonly string[]
  readonly narrow: number
  readonly cells: (item: T) => readonly string[]
}

/** Any value as JSON or YAML, with a line feed at its end. */
export function documentText(value: unknown, format: 'json' | 'yaml'): string {
  if (format === 'json') return `${JSON.stringify(value, null, 2)}\n`
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })
}

/** A list of objects in a format, with a line feed at its end. Empty for a table without rows. */
export function objectsText<T extends DeepReadonly<KubeObject>>(
  items: readonly T[],
  format: OutputFormat,
  { headings, narrow, cells }: Columns<T>,
): string {
  if (format === 'json' || format === 'yaml') return documentText({ apiVersion: 'v1', kind: 'List', items }, format)
  if (format === 'name') return items.map((item) => `${nameOf(item)}\n`).join('')
  if (items.length === 0) return ''
  const rows = [headings, ...items.map(cells)]
  return columns(format === 'wide' ? rows : rows.map((row) => row.slice(0, narrow)))
}

/** `KIND.GROUP/NAME`, as kubectl prints it with `-o name`. */
export function nameOf({ apiVersion, kind, metadata }: DeepReadonly<KubeObject>): string {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['']
  return `${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${metadata.name ?? ''}`
}

/** Rows as aligned columns. A cell is one line, whatever a tenant or a member has written. */
export function columns(table: readonly (readonly string[])[]): string {
  const rows = table.map((cells) => cells.map((cell) => printable(cell).replace(/[\n\t]/g, ' ')))
  const widths: number[] = []
  for (const cells of rows)
    cells.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)))
  const lineOf = (cells: readonly string[]): string =>
    cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')
  return rows.map((cells) => `${lineOf(cells).trimEnd()}\n`).join('')
}

/**
 * Text from a tenant or a member with its control characters replaced: an escape sequence in a name or a message must
 * not command the terminal.
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '�')
}
