// Rows of usage in ConfigMaps beside the LogicalClusters: they survive restarts, and every process and `kcp usage` reach
// them there. Each writer has one ConfigMap for an hour, in parts; those of an hour that is over are put into archives.
// Age and number are bounded.
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

/** The ConfigMap of a writer has its rows under `rows`; an archive has those of several, under the names of theirs. */
interface UsageMap extends KubeObject {
  readonly binaryData?: Readonly<Record<string, string>>
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
      let archived: ReadonlyMap<string, Source> | undefined
      const rows: UsageRow[] = []
      for (let part = 0; ; part++) {
        const name = nameOf(hour, part)
        const map = await client.tryGet<UsageMap>(configMaps, { name, namespace: installationNamespace }, { signal })
        // Only hours that are over are archived.
        if (map === undefined && hour < hourOf(Date.now()))
          archived ??= newestSources(await ofHour(client, hour, signal))
        const packed = map === undefined ? archived?.get(name)?.packed : map.binaryData?.['rows']
        if (packed === undefined) return rows
        for (const row of await rowsIn(packed)) rows.push(row)
      }
    },
    async save(hour, rows, signal) {
      for (let at = 0, part = 0; at < rows.length; at += rowsPerPart, part++)
        await write(nameOf(hour, part), hour, rows.slice(at, at + rowsPerPart), signal)
      if (prunedIn === hour) return
      prunedIn = hour
      try {
        await archive(client, hour, signal)
      } finally {
        await prune(client, hour, signal)
      }
    },
    async of(ids, hour, signal) {
      const gathered = new Map<string, Gathered>()
      const selected = {
        namespace: installationNamespace,
        labelSelector: selectorSince(hour),
        signal,
        limit: mapsPerPage,
      }
      for (let page = ''; ;) {
        const list = await client.list<UsageMap>(configMaps, { ...selected, ...(page !== '' && { continue: page }) })
        // Unpacked one after the other, in a thread: the requests of others run in between.
        for (const map of list.items) if (isSince(map, hour)) await gather(gathered, map, ids)
        page = list.metadata.continue ?? ''
        if (page === '') return rowsOf(gathered)
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

function isSince(map: UsageMap, hour: string): boolean {
  return hourOfMap(map) >= labelOf(hour)
}

/** The rows of all writers from this hour on. */
export async function usageRowsSince(client: KubeClient, hour: string, signal: AbortSignal): Promise<UsageRow[]> {
  const labelSelector = selectorSince(hour)
  const { items } = await client.list<UsageMap>(configMaps, { namespace: installationNamespace, labelSelector, signal })
  const gathered = new Map<string, Gathered>()
  for (const map of items) if (isSince(map, hour)) await gather(gathered, map)
  return rowsOf(gathered)
}

/** What a writer has saved of an hour in one ConfigMap, from that ConfigMap or from an archive. */
interface Source {
  /** The name of its ConfigMap. */
  readonly name: string
  /**
   * The highest counts, and all others are older copies of the same rows: an archive counts more than those before it, and
   * the ConfigMap of the writer most of all, because a writer that is late saves all its rows of the hour again.
   */
  readonly rank: number
  /** Rows, packed with gzip, in base64. */
  readonly packed: string
}

interface Gathered extends Pick<Source, 'rank'> {
  readonly rows: readonly UsageRow[]
}

const archiveName = /^kcp-usage-all-\d{10}-(\d+)$/

/** The number of an archive; undefined for the ConfigMap of a writer. */
function archiveNumber({ metadata: { name = '' } }: UsageMap): number | undefined {
  const number = archiveName.exec(name)?.[1]
  return number === undefined ? undefined : Number(number)
}

function sourcesIn(map: UsageMap): Source[] {
  const { binaryData = {}, metadata } = map
  const number = archiveNumber(map)
  if (number === undefined) return [{ name: metadata.name ?? '', rank: Infinity, packed: binaryData['rows'] ?? '' }]
  return Object.entries(binaryData).map(([name, packed]) => ({ name, rank: number, packed }))
}

/** By name. */
function newestSources(maps: readonly UsageMap[]): Map<string, Source> {
  const sources = new Map<string, Source>()
  for (const source of maps.flatMap(sourcesIn))
    if (source.rank > (sources.get(source.name)?.rank ?? -1)) sources.set(source.name, source)
  return sources
}

/** Adds the rows of a ConfigMap, where they are not older copies of what there is. */
async function gather(gathered: Map<string, Gathered>, map: UsageMap, ids?: ReadonlySet<string>): Promise<void> {
  for (const { name, rank, packed } of sourcesIn(map))
    if (rank > (gathered.get(name)?.rank ?? -1)) gathered.set(name, { rank, rows: await rowsIn(packed, ids) })
}

function rowsOf(gathered: ReadonlyMap<string, Gathered>): UsageRow[] {
  const rows: UsageRow[] = []
  for (const one of gathered.values()) for (const row of one.rows) rows.push(row)
  return rows
}

async function ofHour(client: KubeClient, hour: string, signal: AbortSignal): Promise<UsageMap[]> {
  const labelSelector = `${usageLabel}=${labelOf(hour)}`
  return (await client.list<UsageMap>(configMaps, { namespace: installationNamespace, labelSelector, signal })).items
}

/** The ConfigMaps of all hours, without their rows. */
async function allMaps(client: KubeClient, signal: AbortSignal): Promise<UsageMap[]> {
  const selected = { namespace: installationNamespace, labelSelector: usageLabel, metadataOnly: true, signal }
  return (await client.list<UsageMap>(configMaps, selected)).items
}

function hourOfMap({ metadata }: UsageMap): string {
  return metadata.labels?.[usageLabel] ?? ''
}

/** Hours with up to two ConfigMaps are left as they are; of others, so many are archived at once. */
const [fewMaps, hoursAtOnce] = [2, 24]
/** The rows in an archive, in base64: a ConfigMap may have 1 MiB. */
const maxArchiveLength = 900_000

/**
 * Puts the ConfigMaps of hours that are over into archives. Each has a copy until its archive exists, and the copy counts
 * until it is deleted, so no row is lost or counted twice if this ends midway, or if several processes do it at once.
 */
async function archive(client: KubeClient, hour: string, signal: AbortSignal): Promise<void> {
  const before = labelOf(hourOf(Date.parse(hour) - hourMs))
  const ofWriters = (await allMaps(client, signal)).filter((map) => archiveNumber(map) === undefined)
  const byHour = [...Map.groupBy(ofWriters, hourOfMap)].filter(([at, maps]) => at < before && maps.length > fewMaps)
  const oldestFirst = byHour.map(([at]) => at).sort()
  for (const at of oldestFirst.slice(0, hoursAtOnce)) await archiveHour(client, at, signal)
}

async function archiveHour(client: KubeClient, label: string, signal: AbortSignal): Promise<void> {
  const maps = await ofHour(client, label, signal)
  const numberOf = (map: UsageMap): number => archiveNumber(map) ?? -1
  const archives = maps.filter((map) => numberOf(map) >= 0)
  const archived = newestSources(archives)
  const remove = async ({ metadata: { name = '', uid, resourceVersion } }: UsageMap): Promise<void> => {
    // Whatever its writer has saved since is not in the archive: it stays.
    const unchanged = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) }
    await client
      .delete(configMaps, { name, namespace: installationNamespace }, { ...unchanged, signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }
  const packedIn = (map: UsageMap): string => map.binaryData?.['rows'] ?? ''
  const boxes: UsageMap[][] = [[]]
  let length = 0
  for (const map of maps) {
    if (numberOf(map) >= 0) continue
    const isArchived = archived.get(map.metadata.name ?? '')?.packed === packedIn(map)
    // Of a process that ended before it could delete it.
    if (isArchived) await remove(map)
    if (isArchived) continue
    length += packedIn(map).length
    if (length > maxArchiveLength) {
      boxes.push([])
      length = packedIn(map).length
    }
    boxes.at(-1)?.push(map)
  }
  let number = Math.max(-1, ...archives.map(numberOf))
  for (const box of boxes) {
    if (box.length < 2) continue
    const metadata = {
      name: `kcp-usage-all-${label.replace(/\D/g, '')}-${++number}`,
      namespace: installationNamespace,
      labels: { [usageLabel]: label },
    }
    const binaryData = Object.fromEntries(box.map((map) => [map.metadata.name ?? '', packedIn(map)]))
    const whole: UsageMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData }
    const made = await client.create(configMaps, whole, { signal }).catch(tolerate('AlreadyExists'))
    // Another process archives this hour.
    if (made === undefined) return
    for (const map of box) await remove(map)
  }
}

async function prune(client: KubeClient, hour: string, signal: AbortSignal): Promise<void> {
  const oldest = labelOf(hourOf(Date.parse(hour) - maxDays * 24 * hourMs))
  const newestFirst = (await allMaps(client, signal)).toSorted((a, b) => (hourOfMap(a) < hourOfMap(b) ? 1 : -1))
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

async function rowsIn(packed: string, ids?: ReadonlySet<string>): Promise<UsageRow[]> {
  if (packed === '') return []
  const text = await promisify(gunzip)(Buffer.from(packed, 'base64'), { maxOutputLength: maxTextBytes })
  return parseUsageRows(text.toString('utf8'), ids)
}

const maxTextBytes = 16 * 1024 * 1024
