// `kcp get KIND`: objects of a kind across logical clusters, in the columns of the server.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { logicalClusters, memberClusters } from '#crds/index.ts'
import { allClusters, directOf, type Direct } from '#cli/across/direct.ts'
import { findResource, type FoundResource } from '#cli/across/find-resource.ts'
import {
  changesAfter,
  objectsOf,
  tableOf,
  tablesOf,
  type ClusterRow,
  type ClusterTable,
  type Query,
  type TableColumn,
} from '#cli/across/tables.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { logicalClusterOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, type Installation } from './installation.ts'
import { currentKcpContext } from './kubeconfig-file.ts'
import { columns, documentText, nameOf, printable, type OutputFormat } from './output.ts'

interface Flags extends InstallationFlags {
  readonly allNamespaces?: boolean
  readonly namespace?: string
  readonly clusters?: readonly string[]
  readonly selector?: string
  readonly fieldSelector?: string
  readonly watch?: boolean
  readonly output: OutputFormat
}

/** Runs the command. */
export async function run(text: string, names: readonly string[], flags: Flags): Promise<void> {
  const { allNamespaces = false, namespace, clusters = [], watch = false, output } = flags
  if (allNamespaces && namespace !== undefined) throw new UsageError('-A and -n exclude each other')
  if (watch && output !== 'table' && output !== 'wide') throw new UsageError('-w goes with -o table and -o wide')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await using transport = await openDirect(installation)
  const direct = directOf(transport, signal)
  const own = installationKind(text)
  if (own !== undefined) {
    await getOwn(own, names, { installation, flags, signal })
    return
  }
  for (const name of clusters) if (name !== 'root') await logicalClusterOf(installation, name, signal)
  const resource = await findResource(direct, text, clusters[0] ?? (await anyCluster(installation, signal)))
  const chosen = allNamespaces ? undefined : (namespace ?? (await currentKcpContext())?.namespace ?? 'default')
  const query: Query = {
    resource,
    ...(chosen !== undefined && { namespace: chosen }),
    ...(flags.selector !== undefined && { labelSelector: flags.selector }),
    ...fieldsOf(names, flags.fieldSelector),
  }
  if (output === 'json' || output === 'yaml') {
    printObjects(await objectsOf(direct, clusters, query), { names, output })
    return
  }
  const tables = await readTables(direct, clusters, query)
  print(tables, { names, query, output })
  if (watch) await printChanges(direct, { clusters, tables, query, names, output })
}

/** LogicalClusters and MemberClusters are beside the logical clusters, not in them. */
function installationKind(text: string): FoundResource | undefined {
  const words: Readonly<Record<string, FoundResource>> = {
    ...Object.fromEntries(
      ['lc', 'logicalcluster', 'logicalclusters'].map((word) => [word, ownResource(logicalClusters, 'LogicalCluster')]),
    ),
    ...Object.fromEntries(
      ['mc', 'member', 'members', 'membercluster', 'memberclusters'].map((word) => [
        word,
        ownResource(memberClusters, 'MemberCluster'),
      ]),
    ),
  }
  const [word = ''] = text.toLowerCase().split('.')
  return Object.hasOwn(words, word) ? words[word] : undefined
}

function ownResource(gvr: FoundResource['gvr'], kind: string): FoundResource {
  return { gvr, kind, namespaced: false, isCustom: true }
}

async function getOwn(
  resource: FoundResource,
  names: readonly string[],
  {
    installation,
    flags,
    signal,
  }: { readonly installation: Installation; readonly flags: Flags; readonly signal: AbortSignal },
): Promise<void> {
  if (flags.watch === true)
    throw new UsageError(`watch ${resource.gvr.resource} with:  kubectl get ${resource.gvr.resource} -w`)
  const { output } = flags
  const query: Query = {
    resource,
    ...(flags.selector !== undefined && { labelSelector: flags.selector }),
    ...fieldsOf(names, flags.fieldSelector),
  }
  const own = { client: () => installation.clusters, signal }
  if (output === 'json' || output === 'yaml') {
    printObjects(await objectsOf(own, [''], query), { names, output })
    return
  }
  const table = await tableOf(own, '', query)
  print([table], { names, query, output })
}

async function readTables(direct: Direct, clusters: readonly string[], query: Query): Promise<readonly ClusterTable[]> {
  using progress = startProgress()
  progress.tell(
    `reading ${query.resource.gvr.resource} of ${clusters.length === 0 ? 'all' : clusters.length} logical clusters`,
  )
  return await tablesOf(direct, clusters, query)
}

/** A logical cluster whose discovery names the built-in kinds; undefined if there is none. */
async function anyCluster({ clusters, found }: Installation, signal: AbortSignal): Promise<string | undefined> {
  if (found.rootDir !== undefined) return 'root'
  const { items } = await clusters.list(logicalClusters, { limit: 1, metadataOnly: true, signal })
  return items[0]?.metadata.name
}

/** A single name is asked of the server; several are chosen here. */
function fieldsOf(names: readonly string[], fieldSelector: string | undefined): Pick<Query, 'fieldSelector'> {
  const [name] = names
  const parts = [
    ...(fieldSelector === undefined ? [] : [fieldSelector]),
    ...(names.length === 1 ? [`metadata.name=${name ?? ''}`] : []),
  ]
  return parts.length === 0 ? {} : { fieldSelector: parts.join(',') }
}

function printObjects(
  all: readonly KubeObject[],
  { names, output }: { readonly names: readonly string[]; readonly output: 'json' | 'yaml' },
): void {
  const items = all.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name ?? ''))
  process.stdout.write(documentText({ apiVersion: 'v1', kind: 'List', items }, output))
}

interface Printed {
  readonly names: readonly string[]
  readonly query: Query
  readonly output: OutputFormat
}

function print(tables: readonly ClusterTable[], { names, query, output }: Printed): void {
  const rows = tables.flatMap((table) => table.rows.map((row) => ({ row, columns: table.columns })))
  const shown = rows
    .filter(({ row }) => isNamed(row, names))
    .sort((one, other) => compare(keyOf(one.row), keyOf(other.row)))
  const objects = shown.map(({ row }) => row)
  if (output === 'name') process.stdout.write(objects.map((row) => `${pathOf(row, query.resource)}\n`).join(''))
  else if (shown.length > 0) {
    const [headings, cells] = layoutOf(tables, query, output === 'wide')
    process.stdout.write(columns([headings, ...shown.map(({ row, columns: own }) => cells(row, own))]))
  }
  if (shown.length > 0) return
  if (isOwn(query.resource)) {
    const first =
      query.resource.gvr.resource === 'logicalclusters' ? 'kcp create NAME' : 'kcp join NAME --kubeconfig FILE'
    console.error(`there are no ${query.resource.gvr.resource} yet; the first one:  ${first}`)
    return
  }
  const where = query.resource.namespaced && query.namespace !== undefined ? ` in namespace ${query.namespace}` : ''
  console.error(`no ${query.resource.gvr.resource} found${where}${where === '' ? '' : '; -A shows all namespaces'}`)
}

async function printChanges(
  direct: Direct,
  {
    clusters,
    tables,
    query,
    names,
    output,
  }: Printed & { clusters: readonly string[]; tables: readonly ClusterTable[] },
): Promise<void> {
  const [, cells] = layoutOf(tables, query, output === 'wide')
  const watched = clusters.length === 0 ? [allClusters] : clusters
  await Promise.all(
    watched.map(async (cluster, index) => {
      const table = tables[index] ?? tables[0]
      if (table === undefined) return
      for await (const { type, rows } of changesAfter(direct, { cluster, table, query })) {
        for (const row of rows.filter((one) => isNamed(one, names)))
          process.stdout.write(`${cells(row, table.columns).join('   ')}${type === 'DELETED' ? '   (deleted)' : ''}\n`)
      }
    }),
  ).catch((error: unknown) => {
    if (!direct.signal.aborted) throw error
  })
}

type CellsOf = (row: ClusterRow, own: readonly TableColumn[]) => string[]

/** The headings, and the cells of a row: logical clusters may have different columns of a custom resource. */
function layoutOf(
  tables: readonly ClusterTable[],
  { resource, namespace }: Query,
  isWide: boolean,
): [string[], CellsOf] {
  const names = new Set(
    tables.flatMap((table) => table.columns.filter(({ priority }) => isWide || priority === 0).map(({ name }) => name)),
  )
  const hasNamespace = resource.namespaced && namespace === undefined
  const hasCluster = !isOwn(resource)
  const headings = [
    ...(hasCluster ? ['CLUSTER'] : []),
    ...(hasNamespace ? ['NAMESPACE'] : []),
    ...[...names].map((name) => name.toUpperCase()),
  ]
  return [
    headings,
    (row, own) => [
      ...(hasCluster ? [row.cluster] : []),
      ...(hasNamespace ? [row.object.metadata.namespace ?? ''] : []),
      ...[...names].map((name) => cellText(row.cells[own.findIndex((column) => column.name === name)])),
    ],
  ]
}

function isOwn({ gvr }: FoundResource): boolean {
  return gvr.group === 'kcp.dev' && (gvr.resource === 'logicalclusters' || gvr.resource === 'memberclusters')
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '<none>'
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}

function isNamed({ object }: ClusterRow, names: readonly string[]): boolean {
  return names.length === 0 || names.includes(object.metadata.name ?? '')
}

function keyOf({ cluster, object: { metadata } }: ClusterRow): string {
  return `${cluster}\n${metadata.namespace ?? ''}\n${metadata.name ?? ''}`
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** `CLUSTER/NAMESPACE/KIND.GROUP/NAME`, without the namespace for objects that have none. */
function pathOf({ cluster, object }: ClusterRow, { gvr, kind }: FoundResource): string {
  const apiVersion = gvr.group === '' ? gvr.version : `${gvr.group}/${gvr.version}`
  const { namespace } = object.metadata
  return [
    ...(cluster === '' ? [] : [cluster]),
    ...(namespace === undefined ? [] : [namespace]),
    nameOf({ ...object, apiVersion, kind }),
  ].join('/')
}
