// The logical clusters: health, usage, whether they are in memory.
import { computed, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { Age, Badge, Link, Notice, Plain } from '#console/parts/common.tsx'
import { FilterInput } from '#console/parts/filter-input.tsx'
import { clusters, clustersError, clustersKnown, useClusters, type ClusterItem } from '#console/state/clusters.ts'
import { go } from '#console/state/router.ts'
import { Grid, type GridColumn } from '#console/table/grid.tsx'
import type { SortOrder } from '#console/table/sort.ts'
import { text } from '#console/text.ts'
import { bytesText } from '#console/model/bytes.ts'
import { clustersInOrder } from '#console/model/cluster-order.ts'

const t = text.clusters

/** Columns with their values, as far as they may be absent: a column without any value is not shown. */
const optional: Readonly<Record<string, (item: ClusterItem) => unknown>> = {
  parent: ({ parent }) => parent,
  loaded: ({ loaded }) => loaded,
  objects: ({ usage }) => usage?.objects,
  bytes: ({ usage }) => usage?.bytes,
  watches: ({ usage }) => usage?.watches,
}

const columns: readonly GridColumn<ClusterItem>[] = [
  { id: 'name', title: t.name, width: 24, cell: ({ name }) => <span class="strong">{name}</span> },
  { id: 'parent', title: t.parent, width: 14, cell: ({ parent = '' }) => <Plain>{parent}</Plain> },
  { id: 'health', title: t.health, width: 14, cell: healthCell },
  { id: 'loaded', title: t.memory, width: 12, cell: loadedCell },
  {
    id: 'objects',
    title: t.objects,
    width: 9,
    numeric: true,
    cell: ({ usage }) => usage?.objects?.toLocaleString('en') ?? '',
  },
  { id: 'bytes', title: t.storage, width: 11, numeric: true, cell: storageCell },
  { id: 'watches', title: t.watches, width: 9, numeric: true, cell: ({ usage }) => String(usage?.watches ?? '') },
  { id: 'created', title: t.age, width: 8, cell: ({ created }) => <Age since={created} /> },
  {
    id: 'message',
    title: t.message,
    width: 24,
    cell: ({ asleep, message = '' }) => <Plain>{asleep ?? message}</Plain>,
  },
  { id: 'why', title: text.nav.explain, width: 9, cell: whyCell },
]

/** The columns that at least one logical cluster has a value for. */
function columnsFor(items: readonly ClusterItem[]): readonly GridColumn<ClusterItem>[] {
  return columns.filter(({ id }) => {
    const valueOf = optional[id]
    return valueOf === undefined || items.some((item) => valueOf(item) !== undefined)
  })
}

function healthCell({ ready, reason, phase, asleep }: ClusterItem): JSX.Element {
  if (ready === true && asleep !== undefined) return <Badge tone="plain">{t.asleep}</Badge>
  if (ready === true) return <Badge tone="good">{phase ?? t.ready}</Badge>
  return <Badge tone={ready === false ? 'bad' : 'wait'}>{phase ?? reason ?? t.unknown}</Badge>
}

function loadedCell({ loaded }: ClusterItem): string {
  return loaded === undefined ? '' : loaded ? t.inMemory : t.notInMemory
}

function storageCell({ usage }: ClusterItem): string {
  return usage?.bytes === undefined ? '' : bytesText(usage.bytes)
}

function whyCell({ name, ready }: ClusterItem): JSX.Element | null {
  if (ready === true) return null
  return (
    <span onClick={(event) => event.stopPropagation()}>
      <Link to={{ page: 'explain', cluster: name }}>{text.nav.explain}</Link>
    </span>
  )
}

export function ClustersPage(): JSX.Element {
  const filter = useSignal('')
  const order = useSignal<SortOrder | undefined>(undefined)
  const input = useRef<HTMLInputElement>(null)
  useClusters()
  const shown = useMemo(() => computed(() => clustersInOrder(clusters.value, filter.value, order.value)), [])
  const sortBy = (column: string): void => {
    const { value } = order
    order.value = { column, descending: value?.column === column && !value.descending }
  }
  return (
    <section class="page fill">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <FilterInput filter={filter} label={t.filter} input={input} />
        <span class="count" role="status">
          {text.table.count(shown.value.length, clusters.value.length)}
        </span>
      </div>
      {clustersError.value !== '' ? <Notice kind="bad">{clustersError.value}</Notice> : null}
      {clustersKnown.value && clusters.value.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      <Grid
        label={t.title}
        columns={columnsFor(clusters.value)}
        items={shown}
        keyOf={({ name }) => name}
        open={({ name }) =>
          go({ page: 'table', cluster: name, resource: { group: 'apps', version: 'v1', resource: 'deployments' } })
        }
        order={order.value}
        sortBy={sortBy}
      />
    </section>
  )
}
