// A table of any length that draws only the rows in sight: an ARIA grid, moved through by keyboard.
import { computed, useSignal, type ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { useKeys } from '#console/state/keys.ts'
import { text } from '#console/text.ts'
import type { SortOrder } from './sort.ts'

export interface GridColumn<T> {
  readonly id: string
  readonly title: string
  readonly hint?: string
  /** Width in characters. */
  readonly width: number
  readonly numeric?: boolean
  readonly cell: (item: T) => ComponentChildren
}

interface GridProps<T> {
  readonly label: string
  readonly columns: readonly GridColumn<T>[]
  readonly items: ReadonlySignal<readonly T[]>
  readonly keyOf: (item: T) => string
  readonly open: (item: T) => void
  readonly order?: SortOrder | undefined
  readonly sortBy?: (column: string) => void
}

const rowHeight = 28
const overscan = 8

/** Position and size of what is in sight, in pixels. */
interface View {
  readonly top: number
  readonly height: number
}

export function Grid<T>({ label, columns, items, keyOf, open, order, sortBy }: GridProps<T>): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null)
  const view = useSignal<View>({ top: 0, height: 600 })
  // The key of the row, not its place: rows move while a user looks at them.
  const selected = useSignal<string | undefined>(undefined)
  const id = useMemo(() => `grid-${(gridCount += 1)}`, [])
  useSize(scroller, view)
  const move = (step: number): void => {
    const all = items.value
    const at = selected.value === undefined ? -1 : all.findIndex((item) => keyOf(item) === selected.value)
    const next = Math.max(0, Math.min(all.length - 1, at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step))
    const item = all[next]
    if (item === undefined) return
    selected.value = keyOf(item)
    reveal(scroller.current, next)
  }
  const openSelected = (): void => {
    const item = items.value.find((one) => keyOf(one) === selected.value)
    if (item !== undefined) open(item)
  }
  useGridKeys(move, openSelected)
  const range = useMemo(() => computed(() => rangeOf(view.value, items.value.length)), [items])
  const { from, to } = range.value
  const shown = items.value.slice(from, to)
  const template = columns.map(({ width }) => `minmax(${width}ch, ${width}fr)`).join(' ')
  const minWidth = `${columns.reduce((sum, { width }) => sum + width + 2, 2)}ch`
  const selectedIndex = shown.findIndex((item) => keyOf(item) === selected.value)
  return (
    <div
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={items.value.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={selectedIndex < 0 ? undefined : `${id}-${from + selectedIndex}`}
      tabIndex={0}
      ref={scroller}
      onScroll={(event) => {
        view.value = { top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight }
      }}
      style={{ '--template': template, '--min-width': minWidth }}
    >
      {columns.length === 0 ? null : (
        <div role="rowgroup" class="grid-head">
          <div role="row" class="grid-row" aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} order={order} sortBy={sortBy} />
            ))}
          </div>
        </div>
      )}
      <div role="rowgroup" class="grid-body" style={{ height: `${items.value.length * rowHeight}px` }}>
        {shown.map((item, index) => (
          <div
            key={keyOf(item)}
            id={`${id}-${from + index}`}
            role="row"
            class={keyOf(item) === selected.value ? 'grid-row selected' : 'grid-row'}
            aria-rowindex={from + index + 2}
            aria-selected={keyOf(item) === selected.value}
            style={{ transform: `translateY(${(from + index) * rowHeight}px)` }}
            onClick={() => {
              selected.value = keyOf(item)
              open(item)
            }}
          >
            {columns.map((column) => (
              <div key={column.id} role="gridcell" class={column.numeric === true ? 'cell numeric' : 'cell'}>
                {column.cell(item)}
              </div>
            ))}
          </div>
        ))}
      </div>
      {items.value.length === 0 ? <p class="grid-empty">{text.table.empty}</p> : null}
    </div>
  )
}

let gridCount = 0

function HeaderCell<T>({
  column,
  order,
  sortBy,
}: {
  readonly column: GridColumn<T>
  readonly order: SortOrder | undefined
  readonly sortBy: ((column: string) => void) | undefined
}): JSX.Element {
  const direction = order?.column !== column.id ? undefined : order.descending ? 'descending' : 'ascending'
  const arrow = direction === undefined ? '' : direction === 'ascending' ? ' ↑' : ' ↓'
  return (
    <div role="columnheader" class="cell" aria-sort={direction ?? 'none'} title={column.hint}>
      {sortBy === undefined ? (
        column.title
      ) : (
        <button type="button" class="sort" onClick={() => sortBy(column.id)}>
          {column.title}
          <span aria-hidden="true">{arrow}</span>
        </button>
      )}
    </div>
  )
}

function rangeOf({ top, height }: View, count: number): { from: number; to: number } {
  const from = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - overscan)
  return { from, to: Math.min(count, Math.ceil((top + height) / rowHeight) + overscan) }
}

function useSize(scroller: { readonly current: HTMLDivElement | null }, view: { value: View }): void {
  useEffect(() => {
    const element = scroller.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => {
      view.value = { top: element.scrollTop, height: element.clientHeight }
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
}

function reveal(element: HTMLDivElement | null, index: number): void {
  if (element === null) return
  const top = index * rowHeight
  const visible = element.clientHeight - rowHeight * 2
  if (top < element.scrollTop) element.scrollTop = top
  else if (top > element.scrollTop + visible) element.scrollTop = top - visible
}

function useGridKeys(move: (step: number) => void, openSelected: () => void): void {
  const key = (run: () => void, help: string): { run: () => void; help: string } => ({ run, help })
  useKeys({
    j: key(() => move(1), text.help.down),
    k: key(() => move(-1), text.help.up),
    ArrowDown: key(() => move(1), text.help.down),
    ArrowUp: key(() => move(-1), text.help.up),
    PageDown: key(() => move(20), text.help.pageDown),
    PageUp: key(() => move(-20), text.help.pageUp),
    Home: key(() => move(-1e9), text.help.first),
    End: key(() => move(1e9), text.help.last),
    Enter: key(openSelected, text.help.open),
  })
}
