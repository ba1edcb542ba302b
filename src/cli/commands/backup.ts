// `kcp backup -o PLACE`: a snapshot of every logical cluster, and the objects of the installation, while it runs.
import { join } from 'node:path'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { clusterIdOf, isJsonObject, rootClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient, type Transport } from '#client/index.ts'
import { fillingOf, logicalClusters, placements, transferOf, type LogicalCluster, type Placement } from '#crds/index.ts'
import { SnapshotError } from '#snapshot/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { beginBackup, type BackupPlace, type BackupSource } from './backup-place.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { sizeText, snapshotNow } from './snapshot-file.ts'

interface Flags extends InstallationFlags {
  readonly output: string
  readonly recipient: readonly string[]
}

/** `backup.json` in the folder, which is written last. */
export interface BackupIndex {
  readonly format: 'kcp.dev/backup'
  readonly version: 1
  /** RFC 3339. */
  readonly takenAt: string
  readonly program: string
  /** Where its LogicalClusters are: in logical cluster `root` of `kcp start`, or in a host. */
  readonly kind: 'start' | 'host'
  /** The snapshot of logical cluster `root`; absent with a host. */
  readonly root?: string
  readonly logicalClusters: readonly {
    readonly object: LogicalCluster
    /** The snapshot, relative to the folder. */
    readonly file: string
  }[]
  /** Placements of admins. */
  readonly placements: readonly Placement[]
}

const indexFile = 'backup.json'
/** Logical clusters that are saved at the same time. */
const parallel = 8
const tellMs = 5000

/** Runs the command. */
export async function run({ output, recipient, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  const place = await beginBackup(output, signal)
  try {
    await using installation = await openInstallation(flags, signal)
    await using transport = await openDirect(installation)
    const began = Date.now()
    const {
      clusters,
      found: { rootDir },
    } = installation
    const isStart = rootDir !== undefined
    const saving = { transport, place, recipient, signal }
    const { saved, bytes } = await saveAll(clusters, saving)
    // Last, so that it names no LogicalCluster that is not saved: it has all objects of root.
    const root = isStart ? await save(rootClusterName, saving) : undefined
    const index: BackupIndex = {
      format: 'kcp.dev/backup',
      version: 1,
      takenAt: new Date(began).toISOString(),
      program: programVersion,
      kind: isStart ? 'start' : 'host',
      ...(root !== undefined && { root: root.file }),
      logicalClusters: saved,
      placements: (await clusters.list<Placement>(placements, { signal })).items,
    }
    await place.complete(`${JSON.stringify(index, null, 2)}\n`, signal)
    const seconds = ((Date.now() - began) / 1000).toFixed(1)
    console.log(`${output}: ${saved.length} logical clusters, ${sizeText(bytes + (root?.bytes ?? 0))}, in ${seconds} s`)
    if (isStart) {
      const keys = join(rootDir, '{pki,seal.key}')
      console.log(`the keys are not in it; keep a copy of ${keys} elsewhere: without them, kubeconfigs become invalid`)
    }
    if (recipient.length === 0) console.error('Secrets in it are in plain text; --recipient age1... encrypts them')
  } catch (error) {
    await place.abandon()
    if (error instanceof SnapshotError) throw new ExitError(`"${output}": ${error.message}`, { cause: error })
    throw error
  }
}

interface Saving {
  readonly transport: Transport
  readonly place: BackupPlace
  readonly recipient: readonly string[]
  readonly signal: AbortSignal
}

type Saved = BackupIndex['logicalClusters'][number]

async function saveAll(clusters: KubeClient, saving: Saving): Promise<{ saved: Saved[]; bytes: number }> {
  const { items } = await clusters.list<LogicalCluster>(logicalClusters, { signal: saving.signal })
  // What has moved is written elsewhere; restored, it would be there twice.
  const waiting = items
    .filter((object) => object.metadata.deletionTimestamp === undefined && transferOf(object)?.moved !== true)
    .reverse()
  const saved: Saved[] = []
  let bytes = 0
  let toldAt = Date.now()
  const saveNext = async (): Promise<void> => {
    for (let object = waiting.pop(); object !== undefined; object = waiting.pop()) {
      const waits = fillingOf(object)
      if (waits !== undefined) console.error(`"${object.metadata.name}" is not whole: ${waits}`)
      const found = await save(object.metadata.name, saving).catch((error: unknown) => {
        // It was deleted meanwhile.
        if (isStatusError(error, 'NotFound')) return undefined
        throw error
      })
      if (found !== undefined) saved.push({ object, file: found.file })
      bytes += found?.bytes ?? 0
      if (Date.now() - toldAt < tellMs) continue
      toldAt = Date.now()
      console.error(`${saved.length} of ${items.length} logical clusters are saved`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, saveNext))
  saved.sort((a, b) => (a.object.metadata.name < b.object.metadata.name ? -1 : 1))
  return { saved, bytes }
}

async function save(
  name: string,
  { transport, place, recipient, signal }: Saving,
): Promise<{ file: string; bytes: number }> {
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  const bytes = await snapshotNow(client, recipient, signal)
  const file = `clusters/${name}.kcp.tar.zst${recipient.length === 0 ? '' : '.age'}`
  return { file, bytes: await place.put(file, bytes, signal) }
}

/** The index of a backup. Rejects with ExitError if there is none. */
export async function readIndex(folder: string, source: BackupSource, signal: AbortSignal): Promise<BackupIndex> {
  const text = await source.index(signal)
  if (text === undefined) throw new ExitError(`"${folder}" is no backup: it has no ${indexFile}`)
  let value: unknown
  try {
    value = parseJsonText(text)
  } catch (error) {
    throw new ExitError(`"${folder}" is no backup: its ${indexFile} is not JSON`, { cause: error })
  }
  if (!isJsonObject(value) || value['format'] !== 'kcp.dev/backup' || value['version'] !== 1)
    throw new ExitError(`"${folder}" is no backup that this kcp reads (format kcp.dev/backup, version 1)`)
  const index = value as unknown as BackupIndex
  const isWhole =
    Array.isArray(index.logicalClusters) &&
    index.logicalClusters.every(
      (one: Partial<Saved> | null) =>
        /^clusters\/[a-z0-9-]+\.kcp\.tar\.zst(\.age)?$/.test(one?.file ?? '') &&
        typeof one?.object?.metadata.uid === 'string',
    )
  if (!isWhole) throw new ExitError(`"${folder}" is no backup: its ${indexFile} names no logical clusters`)
  return index
}

/** The id of a logical cluster in a backup. */
export function idOf({ object }: Saved): string {
  return clusterIdOf(object.metadata.uid ?? '')
}
