// A table of any kind, in one logical cluster or across all that the session may see, live by a watch.
import { effect, signal, useComputed, useSignal, type ReadonlySignal, type Signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { follow, tableType, type FollowState } from '#console/kube/follow.ts'
import { everyCluster, listPath, resourceText, type ResourceRef } from '#console/kube/paths.ts'
import { toneOf } from '#console/model/tone.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, StateNotice } from '#console/parts/common.tsx'
import { FilterInput } from '#console/parts/filter-input.tsx'
import { chooser } from '#console/state/chooser.ts'
import { useKeys } from '#console/state/keys.ts'
import { go } from '#console/state/router.ts'
import { onlyCluster } from '#console/state/session.ts'
import { Grid, type GridColumn } from '#console/table/grid.tsx'
import { cellText, maxRows, TableRows, type ColumnDefinition, type Row } from '#console/table/rows.ts'
import { isAgeColumn, type SortOrder } from '#console/table/sort.ts'
import { tableView, type TableView } from '#console/table/view.ts'
import { text } from '#console/text.ts'

const t = text.table

interface LiveTable {
  readonly rows: TableRows
  readonly view: TableView
  readonly state: ReadonlySignal<FollowState>
  readonly columns: ReadonlySignal<readonly ColumnDefinition[]>
  /** All rows, shown or not. */
  readonly total: ReadonlySignal<number>
}

export interface TableSource {
  readonly cluster: string
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
}

interface Controls {
  readonly filter: Signal<string>
  readonly order: Signal<SortOrder | undefined>
}

/** A table that follows the source while it is shown. */
function useLiveTable(source: TableSource, { filter, order }: Controls): LiveTable {
  const live = useMemo(() => {
    const rows = new TableRows(source.cluster)
    const view = tableView(rows, filter, order)
    const state = signal<FollowState>({ kind: 'listing' })
    return { rows, view, state, columns: signal<readonly ColumnDefinition[]>([]), total: signal(0) }
  }, [])
  useEffect(() => {
    const life = new AbortController()
    const { rows, view, state, columns, total } = live
    const changed = (next: FollowState): void => {
      state.value = next
      if (columns.value !== rows.columns) columns.value = rows.columns
      total.value = rows.size
      view.changed()
    }
    const { path, query } = source
    void follow({ path, accept: tableType, ...(query && { query }), sink: rows, changed, signal: life.signal })
    return () => {
      life.abort()
      view[Symbol.dispose]()
    }
  }, [])
  return live
}

interface TablePageProps {
  readonly cluster: string
  readonly resource: ResourceRef
}

export function TablePage({ cluster, resource }: TablePageProps): JSX.Element {
  const source = { cluster: cluster === everyCluster ? onlyCluster() : cluster, path: listPath(cluster, resource) }
  const openRow = ({ cluster: of, namespace, name }: Row): void =>
    go({ page: 'object', object: { ...resource, cluster: of, namespace, name }, tab: 'overview' })
  return (
    <section class="page fill">
      <LiveTableView
        source={source}
        title={<TableTitle cluster={cluster} resource={resource} />}
        label={resource.resource}
        showCluster={cluster === everyCluster}
        open={openRow}
      />
    </section>
  )
}

function TableTitle({ cluster, resource }: TablePageProps): JSX.Element {
  return (
    <h1 class="crumbs">
      <button type="button" onClick={() => (chooser.value = 'cluster')} title={text.help.chooseCluster}>
        {cluster === everyCluster ? t.allClusters : cluster}
      </button>
      <span aria-hidden="true">/</span>
      <button type="button" onClick={() => (chooser.value = 'kind')} title={resourceText(resource)}>
        {resource.resource}
      </button>
    </h1>
  )
}

interface LiveTableProps {
  readonly source: TableSource
  readonly title: JSX.Element
  readonly label: string
  readonly showCluster: boolean
  readonly open: (row: Row) => void
  /** Default: the order of the server's identity of rows. */
  readonly initialOrder?: SortOrder
}

export function LiveTableView(props: LiveTableProps): JSX.Element {
  const { source, title, label, showCluster, open, initialOrder } = props
  const filter = useSignal(filterInUrl())
  const order = useSignal<SortOrder | undefined>(initialOrder)
  const wide = useSignal(false)
  const input = useRef<HTMLInputElement>(null)
  const { view, state, columns, total } = useLiveTable(source, { filter, order })
  useEffect(() => effect(() => writeFilter(filter.value)), [])
  useKeys({ W: { help: text.help.wide, run: () => (wide.value = !wide.value) } })
  const widths = useMemo(() => new Map<string, number>(), [])
  const gridColumns = useComputed(() => {
    const sample = view.shown.value.slice(0, 100)
    return columnsFor({ columns: columns.value, wide: wide.value, showCluster, sample, widths })
  })
  const sortBy = (column: string): void => {
    const { value } = order
    order.value =
      value?.column === column && value.descending ? undefined : { column, descending: value?.column === column }
  }
  return (
    <>
      <div class="toolbar">
        {title}
        <FilterInput filter={filter} label={t.filter} input={input} />
        <label class="check">
          <input
            type="checkbox"
            checked={wide.value}
            onChange={(event) => (wide.value = event.currentTarget.checked)}
          />
          {t.wide}
        </label>
        <StateText state={state.value} shown={view.shown.value.length} total={total.value} />
      </div>
      {state.value.kind === 'refused' ? <StateNotice state={state.value} /> : null}
      <Grid
        label={label}
        columns={gridColumns.value}
        items={view.shown}
        keyOf={({ key }) => key}
        open={open}
        order={order.value}
        sortBy={sortBy}
      />
    </>
  )
}

function StateText({
  state,
  shown,
  total,
}: {
  readonly state: FollowState
  readonly shown: number
  readonly total: number
}): JSX.Element {
  const word = { listing: t.listing, live: t.live, retrying: t.retrying, refused: t.refused }[state.kind]
  const hint = 'message' in state ? visibleText(state.message) : ''
  return (
    <span class="count" role="status" title={hint}>
      {t.count(shown, total)} {total >= maxRows ? t.full : ''} <span class={`dot ${state.kind}`} aria-hidden="true" />{' '}
      {word}
    </span>
  )
}

interface ColumnsInput {
  readonly columns: readonly ColumnDefinition[]
  readonly wide: boolean
  readonly showCluster: boolean
  readonly sample: readonly Row[]
  /** The widths so far, by column: columns do not become narrower while rows change. */
  readonly widths: Map<string, number>
}

function columnsFor({ columns, wide, showCluster, sample, widths }: ColumnsInput): GridColumn<Row>[] {
  const isNamespaced = sample.some(({ namespace }) => namespace !== '')
  const width = (title: string, textOf: (row: Row) => string): number => {
    const wanted = Math.max(title.length + 3, widths.get(title) ?? 0, ...sample.map((row) => textOf(row).length + 1))
    widths.set(title, Math.min(60, wanted))
    return Math.min(60, wanted)
  }
  const own = [
    ...(showCluster ? [{ id: 'Cluster', cell: (row: Row) => row.cluster }] : []),
    ...(isNamespaced ? [{ id: 'Namespace', cell: (row: Row) => row.namespace }] : []),
  ].map(({ id, cell }) => ({ id, title: id, width: width(id, cell), cell }))
  const given = columns.flatMap((column, index) => {
    const { name, priority = 0, type, description } = column
    if (priority > 0 && !wide) return []
    const isNumeric = type === 'integer' || type === 'number'
    return [
      {
        id: name,
        title: visibleText(name),
        ...(description !== undefined && { hint: visibleText(description) }),
        numeric: isNumeric,
        width: isAgeColumn(column) ? 8 : width(name, ({ cells }) => cellText(cells[index])),
        cell: (row: Row) => (isAgeColumn(column) ? <Age since={row.created} /> : cellOf(row, index)),
      },
    ]
  })
  return [...own, ...given]
}

function cellOf({ cells }: Row, index: number): JSX.Element {
  const value = visibleText(cellText(cells[index]))
  const tone = index === 0 ? 'strong' : toneOf(value)
  return <span class={tone}>{value}</span>
}

/** The filter is part of the URL, so that a link shows the same rows. */
function filterInUrl(): string {
  return new URLSearchParams(location.hash.split('?')[1] ?? '').get('q') ?? ''
}

function writeFilter(filter: string): void {
  const [path = ''] = location.hash.split('?')
  const query = filter === '' ? '' : `?${new URLSearchParams({ q: filter }).toString()}`
  if (location.hash !== `${path}${query}`) history.replaceState(null, '', `${location.pathname}${path}${query}`)
}
