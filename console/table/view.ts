// The rows that a table shows: filtered and sorted, computed again at most as often as the machine can.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals'
import { filterOf } from './filter.ts'
import type { Row, TableRows } from './rows.ts'
import { sorted, type SortOrder } from './sort.ts'

export interface TableView extends Disposable {
  readonly shown: ReadonlySignal<readonly Row[]>
  /** Says that the rows have changed. */
  readonly changed: () => void
}

const minPauseMs = 100

/** Follows the filter and the order at once, and changes of the rows after a pause that grows with their cost. */
export function tableView(
  rows: TableRows,
  filter: ReadonlySignal<string>,
  order: ReadonlySignal<SortOrder | undefined>,
): TableView {
  const shown = signal<readonly Row[]>([])
  let timer: ReturnType<typeof setTimeout> | undefined
  let pauseMs = minPauseMs
  const compute = (of: { filter: string; order: SortOrder | undefined }): void => {
    clearTimeout(timer)
    timer = undefined
    const started = performance.now()
    shown.value = rowsOf(rows, of.filter, of.order)
    // A tenth of the time at most goes into showing changes of large tables.
    pauseMs = Math.max(minPauseMs, (performance.now() - started) * 9)
  }
  // The effect runs again when one of them changes.
  const inputs = computed(() => ({ filter: filter.value, order: order.value }))
  const stop = effect(() => {
    compute(inputs.value)
  })
  return {
    shown,
    changed: () => {
      timer ??= setTimeout(() => compute(inputs.peek()), pauseMs)
    },
    [Symbol.dispose]: () => {
      stop()
      clearTimeout(timer)
    },
  }
}

export function rowsOf(rows: TableRows, filter: string, order: SortOrder | undefined): Row[] {
  const test = filterOf(filter, rows.columns)
  const found: Row[] = []
  for (const row of rows.values()) if (test === undefined || test(row)) found.push(row)
  return sorted(found, rows.columns, order)
}
