// Tables of a resource across logical clusters, with the columns that the server chooses and one for the logical
// cluster.
import { resourcePath, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { logicalClusterAnnotation } from '#client/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { allClusters, basePath, each, isExpired, watchLines, type Direct } from './direct.ts'
import type { FoundResource } from './find-resource.ts'

export interface TableColumn {
  readonly name: string
  /** Columns above 0 are shown with `-o wide` only. */
  readonly priority: number
}
interface TableRow {
  readonly cells: readonly unknown[]
  readonly object: KubeObject
}
interface RawTable {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string }
  readonly columnDefinitions?: readonly TableColumn[] | null
  readonly rows: readonly TableRow[]
}

/** A row with the logical cluster that it is from. */
export interface ClusterRow extends TableRow {
  readonly cluster: string
}

export interface Query {
  readonly resource: FoundResource
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** A table of one logical cluster, or of all with `*`; a watch can go on from it. */
export interface ClusterTable {
  readonly columns: readonly TableColumn[]
  readonly rows: readonly ClusterRow[]
  readonly resourceVersion: string
}

const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
const pageSize = 500
/** Requests to single logical clusters at a time. */
const atATime = 8
/** Above this number of logical clusters, custom resources are shown without columns of their own. */
const maxForColumns = 64

/** All pages of the table. */
export async function tableOf(
  direct: Pick<Direct, 'client' | 'signal'>,
  cluster: string,
  query: Query,
): Promise<ClusterTable> {
  const { client, signal } = direct
  const rows: ClusterRow[] = []
  let [columns, version, next]: [readonly TableColumn[], string, string] = [[], '', '']
  do {
    const path = `${pathOf(query)}${queryText(query, { limit: String(pageSize), ...(next !== '' && { continue: next }) })}`
    const page = (await client(cluster)
      .raw(path, { accept, signal })
      .catch((error: unknown) => explained(error, cluster))) as RawTable
    columns = page.columnDefinitions ?? columns
    for (const row of page.rows) rows.push(rowOf(row, cluster))
    version = page.metadata.resourceVersion ?? version
    next = page.metadata.continue ?? ''
  } while (next !== '')
  return { columns, rows, resourceVersion: version }
}

/**
 * One table for each named logical cluster; if none is named, one table for all logical clusters together. A custom
 * resource of which only few logical clusters have objects is read in each of these instead, because a list across all
 * has no columns for it.
 */
export async function tablesOf(
  direct: Direct,
  clusters: readonly string[],
  query: Query,
): Promise<readonly ClusterTable[]> {
  if (clusters.length > 0) return each(clusters, atATime, (cluster) => tableOf(direct, cluster, query))
  const all = await tableOf(direct, allClusters, query)
  const names = [...new Set(all.rows.map(({ cluster }) => cluster))]
  if (!query.resource.isCustom || names.length === 0 || names.length > maxForColumns) return [all]
  return each(names, atATime, (cluster) => tableOf(direct, cluster, query))
}

function explained(error: unknown, cluster: string): never {
  if (cluster !== allClusters && isStatusError(error, 'NotFound'))
    throw new ExitError(`logical cluster "${cluster}" does not serve this kind`)
  throw error
}

/** The whole objects of the named logical clusters, or with none named, of all; each says its logical cluster. */
export async function objectsOf(
  direct: Pick<Direct, 'client' | 'signal'>,
  clusters: readonly string[],
  query: Query,
): Promise<KubeObject[]> {
  const { resource, namespace, labelSelector, fieldSelector } = query
  const options = {
    ...(resource.namespaced && namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
  const { gvr, kind } = resource
  const apiVersion = gvr.group === '' ? gvr.version : `${gvr.group}/${gvr.version}`
  const lists = await each(clusters.length === 0 ? [allClusters] : clusters, atATime, async (cluster) => {
    const { items } = await direct
      .client(cluster)
      .list(gvr, { ...options, signal: direct.signal })
      .catch((error: unknown) => explained(error, cluster))
    return cluster === allClusters ? items : items.map((item) => withCluster(item, cluster))
  })
  // Items of a list have no kind of their own.
  return lists.flat().map((item) => ({ ...item, apiVersion, kind }))
}

function withCluster(object: KubeObject, cluster: string): KubeObject {
  if (cluster === '') return object
  const annotations = { ...object.metadata.annotations, [logicalClusterAnnotation]: cluster }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** Watches the changes after a table, without an end. Yields the rows that were added, changed or deleted. */
export async function* changesAfter(
  direct: Direct,
  { cluster, table, query }: { readonly cluster: string; readonly table: ClusterTable; readonly query: Query },
): AsyncGenerator<{ readonly type: string; readonly rows: readonly ClusterRow[] }> {
  let version = table.resourceVersion
  for (;;) {
    const parameters = { watch: '1', allowWatchBookmarks: 'true', resourceVersion: version }
    const path = `${basePath(cluster)}${pathOf(query)}${queryText(query, parameters)}`
    try {
      for await (const { type, object } of watchLines(direct, path, accept)) {
        const { rows, metadata } = object as RawTable
        version = rows[0]?.object.metadata.resourceVersion ?? metadata.resourceVersion ?? version
        if (type !== 'BOOKMARK') yield { type, rows: rows.map((row) => rowOf(row, cluster)) }
      }
    } catch (error) {
      if (!isExpired(error)) throw error
      version = (await tableOf(direct, cluster, query)).resourceVersion
    }
  }
}

function rowOf(row: TableRow, cluster: string): ClusterRow {
  const named = row.object.metadata.annotations?.[logicalClusterAnnotation]
  return { ...row, cluster: cluster === allClusters ? (named ?? '') : cluster }
}

function pathOf({ resource: { gvr, namespaced }, namespace }: Query): string {
  return resourcePath(gvr, namespaced && namespace !== undefined ? { namespace } : {})
}

function queryText({ labelSelector, fieldSelector }: Query, more: Readonly<Record<string, string>>): string {
  return `?${new URLSearchParams({
    ...more,
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }).toString()}`
}
