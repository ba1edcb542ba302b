// Rows of usage in ConfigMaps beside the LogicalClusters: they survive restarts, and every process and `kcp usage` reach
// them there. Each writer has one ConfigMap for an hour, in parts. Age and number are bounded.
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { hourMs, hourOf, parseUsageRows, usageRowsText, type UsageHistory, type UsageRow } from '#crds/index.ts'
import { installationNamespace } from './host-installation.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const usageLabel = 'kcp.dev/usage-hour'

/** Rows in one ConfigMap: some 300 KiB, where an object may have 1.5 MiB. */
const rowsPerPart = 10_000
/** For how many days rows are kept, and how many ConfigMaps there are at most: the oldest hours go first. */
const [maxDays, maxParts] = [62, 4000]

interface UsageMap extends KubeObject {
  readonly binaryData?: { readonly rows?: string }
}

export interface HistoryOptions {
  /** The API with the LogicalClusters. */
  readonly client: KubeClient
  /** Names the process: letters, digits and dashes. */
  readonly writer: string
  /** Whether the namespace may be missing: in logical cluster `root`. */
  readonly makesNamespace?: boolean
}

/** The history of one writer. */
export function openUsageHistory({ client, writer, makesNamespace = false }: HistoryOptions): UsageHistory {
  const nameOf = (hour: string, part: number): string =>
    `kcp-usage-${hour.slice(0, 13).replace(/\D/g, '')}-${writer}-${part}`
  let prunedIn = ''
  const write = async (name: string, hour: string, rows: readonly UsageRow[], signal: AbortSignal): Promise<void> => {
    const packed = await promisify(gzip)(usageRowsText(rows))
    const map: UsageMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: installationNamespace, labels: { [usageLabel]: labelOf(hour) } },
      binaryData: { rows: packed.toString('base64') },
    }
    const ref = { name, namespace: installationNamespace }
    const patched = await client
      .patch(configMaps, ref, 'merge', { binaryData: map.binaryData }, { signal })
      .catch(tolerate('NotFound'))
    if (patched !== undefined) return
    if (makesNamespace) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: installationNamespace } }
      await client.create(namespaces, namespace, { signal }).catch(tolerate('AlreadyExists'))
    }
    await client.create(configMaps, map, { signal })
  }
  return {
    async own(hour, signal) {
      const rows: UsageRow[] = []
      for (let part = 0; ; part++) {
        const ref = { name: nameOf(hour, part), namespace: installationNamespace }
        const found = await client.get<UsageMap>(configMaps, ref, { signal }).catch(tolerate('NotFound'))
        if (found === undefined) return rows
        rows.push(...(await rowsOf(found)))
      }
    },
    async save(hour, rows, signal) {
      for (let at = 0, part = 0; at < rows.length; at += rowsPerPart, part++)
        await write(nameOf(hour, part), hour, rows.slice(at, at + rowsPerPart), signal)
      if (prunedIn === hour) return
      prunedIn = hour
      await prune(client, hour, signal)
    },
    async of(ids, hour, signal) {
      const rows: UsageRow[] = []
      const selected = {
        namespace: installationNamespace,
        labelSelector: selectorSince(hour),
        signal,
        limit: mapsPerPage,
      }
      for (let page = ''; ;) {
        const list = await client.list<UsageMap>(configMaps, { ...selected, ...(page !== '' && { continue: page }) })
        // Unpacked one after the other, in a thread: the requests of others run in between.
        for (const map of list.items) if (isSince(map, hour)) for (const row of await rowsOf(map, ids)) rows.push(row)
        page = list.metadata.continue ?? ''
        if (page === '') return rows
      }
    },
  }
}

/** How many ConfigMaps are in memory at once while a server reads the rows of a few logical clusters. */
const mapsPerPage = 20
/** The most hours that are asked for by name: a selector is part of a URL. */
const maxNamedHours = 100

/** Selects at least the ConfigMaps from this hour on. Of a few hours, no other ConfigMaps are read. */
function selectorSince(hour: string): string {
  const count = Math.ceil((Date.now() + hourMs - Date.parse(hour)) / hourMs)
  if (count > maxNamedHours) return usageLabel
  const hours = Array.from({ length: Math.max(1, count) }, (_, i) => labelOf(hourOf(Date.parse(hour) + i * hourMs)))
  return `${usageLabel} in (${hours.join(',')})`
}

function isSince({ metadata }: UsageMap, hour: string): boolean {
  return (metadata.labels?.[usageLabel] ?? '') >= labelOf(hour)
}

/** The rows of all writers from this hour on. */
export async function usageRowsSince(client: KubeClient, hour: string, signal: AbortSignal): Promise<UsageRow[]> {
  const labelSelector = selectorSince(hour)
  const { items } = await client.list<UsageMap>(configMaps, { namespace: installationNamespace, labelSelector, signal })
  const rows: UsageRow[] = []
  for (const map of items) if (isSince(map, hour)) for (const row of await rowsOf(map)) rows.push(row)
  return rows
}

async function prune(client: KubeClient, hour: string, signal: AbortSignal): Promise<void> {
  const { items } = await client.list<UsageMap>(configMaps, {
    namespace: installationNamespace,
    labelSelector: usageLabel,
    signal,
  })
  const oldest = labelOf(hourOf(Date.parse(hour) - maxDays * 24 * hourMs))
  const hourOfMap = ({ metadata }: UsageMap): string => metadata.labels?.[usageLabel] ?? ''
  const newestFirst = items.toSorted((a, b) => (hourOfMap(a) < hourOfMap(b) ? 1 : -1))
  for (const [index, map] of newestFirst.entries())
    if (index >= maxParts || hourOfMap(map) < oldest)
      await client
        .delete(configMaps, { name: map.metadata.name ?? '', namespace: installationNamespace }, { signal })
        .catch(tolerate('NotFound'))
}

/** Label values have no colons; these sort like the hours. */
function labelOf(hour: string): string {
  return hour.slice(0, 13)
}

async function rowsOf({ binaryData }: UsageMap, ids?: ReadonlySet<string>): Promise<UsageRow[]> {
  if (binaryData?.rows === undefined) return []
  const text = await promisify(gunzip)(Buffer.from(binaryData.rows, 'base64'), { maxOutputLength: maxTextBytes })
  return parseUsageRows(text.toString('utf8'), ids)
}

const maxTextBytes = 16 * 1024 * 1024
