// Rows of server-side Tables, and their changes by a list in pages and by a watch.

import type { Sink, StreamEvent } from '#console/kube/follow.ts'

/** The annotation by which lists over all logical clusters name the logical cluster of an object. */
export const clusterAnnotation = 'kcp.dev/logical-cluster'

export interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format?: string
  readonly description?: string
  /** 0: always shown; greater: wide. */
  readonly priority?: number
}

export interface TableMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

export interface TableDocument {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly columnDefinitions?: readonly ColumnDefinition[] | null
  readonly rows?: readonly { readonly cells: readonly unknown[]; readonly object?: { readonly metadata?: TableMeta } }[]
}

export interface Row {
  /** Unique in one table, over all logical clusters. */
  readonly key: string
  readonly cluster: string
  readonly namespace: string
  readonly name: string
  /** Unix milliseconds; NaN if not known. */
  readonly created: number
  readonly deleting: boolean
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly cells: readonly unknown[]
  /** All that a filter without a column searches, in lower case. */
  readonly searchText: string
}

/** Strings that many rows share, such as names of namespaces, once each. */
export class SharedStrings {
  readonly #known = new Map<string, string>()

  of(text: string): string {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    // Names of pods never repeat; without a bound, a long watch would keep all that ever were.
    if (this.#known.size >= 50_000) this.#known.clear()
    this.#known.set(text, text)
    return text
  }
}

/** More rows than these are not kept: a page must not fill the memory of its browser. */
export const maxRows = 200_000
/** Longer cells are cut. */
const maxCellLength = 2000

/** A table that a list fills and a watch changes. Every change makes `version` greater. */
export class TableRows implements Sink<TableDocument> {
  columns: readonly ColumnDefinition[] = []
  version = 0
  #rows = new Map<string, Row>()
  /** Rows of a list that is being read while the rows of the former list are shown. */
  #next: Map<string, Row> | undefined
  readonly #strings = new SharedStrings()
  readonly #defaultCluster: string

  /** `defaultCluster` is the logical cluster of rows that do not name theirs. */
  constructor(defaultCluster: string) {
    this.#defaultCluster = defaultCluster
  }

  get size(): number {
    return this.#rows.size
  }

  /** No more rows are taken. */
  get isFull(): boolean {
    return (this.#next ?? this.#rows).size >= maxRows
  }

  values(): Iterable<Row> {
    return this.#rows.values()
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key)
  }

  /** Begins a list. Rows of an earlier list stay visible until the new list is complete. */
  beginList(): void {
    this.#next = this.#rows.size === 0 ? undefined : new Map()
  }

  /** Adds a page of the list. */
  addPage(page: TableDocument): void {
    this.#takeColumns(page)
    const rows = this.#next ?? this.#rows
    for (const row of this.#rowsOf(page)) if (rows.size < maxRows) rows.set(row.key, row)
    this.version++
  }

  /** Ends the list: only its rows are left. */
  endList(): void {
    if (this.#next !== undefined) this.#rows = this.#next
    this.#next = undefined
    this.version++
  }

  /** Applies a watch event of type ADDED, MODIFIED or DELETED. */
  apply({ type, object }: StreamEvent<TableDocument>): string | undefined {
    this.#takeColumns(object)
    for (const row of this.#rowsOf(object)) {
      if (type === 'DELETED') this.#rows.delete(row.key)
      else if (this.#rows.size < maxRows || this.#rows.has(row.key)) this.#rows.set(row.key, row)
    }
    this.version++
    return object.rows?.at(-1)?.object?.metadata?.resourceVersion
  }

  #takeColumns({ columnDefinitions }: TableDocument): void {
    if (columnDefinitions != null && columnDefinitions.length > 0) this.columns = columnDefinitions
  }

  *#rowsOf({ rows = [] }: TableDocument): Generator<Row> {
    for (const { cells, object } of rows) {
      const metadata = object?.metadata
      if (metadata !== undefined) yield this.#rowOf(cells, metadata)
    }
  }

  #cellOf(cell: unknown): unknown {
    if (typeof cell === 'number' || typeof cell === 'boolean' || cell === null) return cell
    const text = cellText(cell)
    if (text.length > maxCellLength) return `${text.slice(0, maxCellLength)}…`
    return text.length < 40 ? this.#strings.of(text) : text
  }

  #rowOf(given: readonly unknown[], metadata: TableMeta): Row {
    const cells = given.map((cell) => this.#cellOf(cell))
    const { name, namespace = '', uid, creationTimestamp, deletionTimestamp, labels, annotations } = metadata
    const cluster = annotations?.[clusterAnnotation] ?? this.#defaultCluster
    return {
      key: `${cluster}|${uid ?? `${namespace}/${name}`}`,
      cluster: this.#strings.of(cluster),
      namespace: this.#strings.of(namespace),
      name,
      created: Date.parse(creationTimestamp ?? ''),
      deleting: deletionTimestamp !== undefined,
      labels,
      cells,
      searchText: searchTextOf(cluster, namespace, name, cells),
    }
  }
}

function searchTextOf(cluster: string, namespace: string, name: string, cells: readonly unknown[]): string {
  return [cluster, namespace, name, ...cells.map(cellText)].join(' ').toLowerCase()
}

/** A cell as text. Cells of custom columns may be any JSON. */
export function cellText(cell: unknown): string {
  if (typeof cell === 'string') return cell
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'number' || typeof cell === 'boolean') return String(cell)
  return JSON.stringify(cell)
}
