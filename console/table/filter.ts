// The filter of tables: words that a row must contain, `!word` that it must not contain, `column:word`, `column>number`.
import { cellText, type ColumnDefinition, type Row } from './rows.ts'
import { quantityOf } from './sort.ts'

export type RowFilter = (row: Row) => boolean

interface Term {
  readonly negated: boolean
  /** Empty: the whole row. */
  readonly field: string
  readonly operator: ':' | '>' | '<' | '='
  readonly value: string
}

/** Parses the text that a user typed. Quotes keep blanks together: `"not ready"`. Never throws. */
export function parseFilter(text: string): Term[] {
  const words = text.match(/!?(?:[^\s"]*"[^"]*"|[^\s"]+)/g) ?? []
  return words.map(termOf).filter(({ value }) => value !== '')
}

function termOf(word: string): Term {
  const negated = word.startsWith('!')
  const plain = (negated ? word.slice(1) : word).toLowerCase()
  const match = /^([a-z][a-z0-9-]*)([:<>=])(.+)$/.exec(plain)
  const [, field = '', operator = ':', value = plain] = match ?? []
  return { negated, field, operator: operator as Term['operator'], value: value.replaceAll('"', '') }
}

/** A function that says whether a row is shown; undefined if every row is. */
export function filterOf(text: string, columns: readonly ColumnDefinition[]): RowFilter | undefined {
  const tests = parseFilter(text).map((term) => testOf(term, columns))
  if (tests.length === 0) return undefined
  return (row) => tests.every((test) => test(row))
}

function testOf(term: Term, columns: readonly ColumnDefinition[]): RowFilter {
  const field = fieldOf(term.field, columns)
  // `a:b` may be part of a name of an image: without such a column, the whole text is searched.
  const test = field === undefined ? containing(wholeText(term)) : comparing(term, field)
  return term.negated ? (row) => !test(row) : test
}

function wholeText({ field, operator, value }: Term): string {
  return field === '' ? value : `${field}${operator}${value}`
}

function containing(text: string): RowFilter {
  return ({ searchText }) => searchText.includes(text)
}

function comparing({ operator, value }: Term, textOf: (row: Row) => string): RowFilter {
  if (operator === ':') return (row) => textOf(row).toLowerCase().includes(value)
  if (operator === '=') return (row) => textOf(row).toLowerCase() === value
  const bound = quantityOf(value)
  return (row) => {
    const found = quantityOf(textOf(row))
    return operator === '>' ? found > bound : found < bound
  }
}

function fieldOf(name: string, columns: readonly ColumnDefinition[]): ((row: Row) => string) | undefined {
  if (name === '') return undefined
  if (name === 'cluster') return ({ cluster }) => cluster
  if (name === 'ns' || name === 'namespace') return ({ namespace }) => namespace
  if (name === 'label') return ({ labels }) => labelText(labels)
  const index = columns.findIndex((column) => columnKey(column.name) === name)
  return index < 0 ? undefined : ({ cells }) => cellText(cells[index])
}

function labelText(labels: Row['labels']): string {
  return Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')
}

/** The name of a column as a filter has it: `Node Selector` is `node-selector`. */
export function columnKey(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-')
}
