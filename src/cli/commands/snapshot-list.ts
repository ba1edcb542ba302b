// `kcp snapshot list [PLACE]`: the snapshots in a folder or bucket, and the LogicalClusterSnapshots of the installation.
// Of files and objects it reads the manifests only.
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { logicalClusterSnapshots, type LogicalClusterSnapshot } from '#crds/index.ts'
import { decrypted, readSnapshot, SnapshotError, type SnapshotManifest } from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { columns, documentText } from './output.ts'
import { sizeText } from './snapshot-file.ts'
import { identitiesOf, isBucketUrl, openBucket, tryInstallation, type PlaceFlags } from './snapshot-places.ts'

interface Flags extends PlaceFlags {
  readonly output: 'table' | 'json' | 'yaml'
}

interface Listed {
  /** A file, or `s3://bucket/key`. */
  readonly file?: string
  /** The name of a LogicalClusterSnapshot. */
  readonly snapshot?: string
  readonly bytes: number
  readonly manifest?: Pick<SnapshotManifest, 'takenAt' | 'revision' | 'objects'> & {
    readonly logicalCluster: { readonly name: string; readonly id: string }
  }
  readonly problem?: string
}

const snapshotFile = /\.kcp\.tar(\.zst)?(\.age)?$/

/** Runs the command. */
export async function run(place: string | undefined, { output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  const found: Listed[] = []
  const identities = await identitiesOf(flags)
  if (place !== undefined && isBucketUrl(place))
    for await (const one of inBucket(place, identities, signal)) found.push(one)
  else for await (const one of inFolder(place ?? '.', identities)) found.push(one)
  if (place === undefined) found.push(...(await ofInstallation(flags, signal)))
  found.sort((a, b) => ((a.manifest?.takenAt ?? '') < (b.manifest?.takenAt ?? '') ? 1 : -1))
  if (output !== 'table') {
    process.stdout.write(documentText(found, output))
    return
  }
  if (found.length === 0) {
    console.error(`no snapshot (*.kcp.tar.zst) is in "${place ?? '.'}"; the first one:  kcp snapshot create NAME`)
    return
  }
  const rows = found.map(({ file, snapshot, bytes, manifest, problem = '' }) => [
    manifest?.logicalCluster.name ?? '',
    manifest?.takenAt ?? '',
    manifest?.revision ?? '',
    manifest === undefined ? '' : String(manifest.objects),
    sizeText(bytes),
    `${file ?? `lcs/${snapshot ?? ''}`}${problem === '' ? '' : ` (${problem})`}`,
  ])
  process.stdout.write(columns([['CLUSTER', 'TAKEN', 'REVISION', 'OBJECTS', 'SIZE', 'SNAPSHOT'], ...rows]))
}

async function* inFolder(folder: string, identities: readonly string[]): AsyncGenerator<Listed> {
  const names = await readdir(folder).catch(() => {
    throw new ExitError(`there is no folder "${folder}"`)
  })
  for (const name of names.filter((one) => snapshotFile.test(one))) {
    const file = join(folder, name)
    yield await listed({ file, bytes: (await stat(file)).size }, identities, () => createReadStream(file))
  }
}

async function* inBucket(url: string, identities: readonly string[], signal: AbortSignal): AsyncGenerator<Listed> {
  const { storage, key: folder } = await openBucket(url)
  try {
    for await (const { key, bytes } of storage.list(folder, signal))
      if (snapshotFile.test(key))
        yield await listed({ file: storage.location(key), bytes }, identities, () => storage.get(key, signal))
  } catch (error) {
    if (error instanceof SnapshotError) throw new ExitError(`"${url}": ${error.message}`, { cause: error })
    throw error
  }
}

async function listed(
  about: { readonly file: string; readonly bytes: number },
  identities: readonly string[],
  open: () => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>,
): Promise<Listed> {
  try {
    for await (const item of readSnapshot(await decrypted(await open(), identities))) {
      if (!('manifest' in item)) break
      const { initial: _initial, deleted: _deleted, parts: _parts, ...manifest } = item.manifest
      return { ...about, manifest }
    }
    return { ...about, problem: 'it is empty' }
  } catch (error) {
    if (error instanceof SnapshotError) return { ...about, problem: error.message }
    throw error
  }
}

async function ofInstallation(flags: PlaceFlags, signal: AbortSignal): Promise<Listed[]> {
  await using installation = await tryInstallation(flags, signal)
  if (installation === undefined) return []
  const { items } = await installation.clusters.list<LogicalClusterSnapshot>(logicalClusterSnapshots, { signal })
  return items.map(({ metadata: { name }, spec, status = {} }) => {
    const complete = status.conditions?.find(({ type }) => type === 'Complete')
    const {
      phase = 'Waiting',
      bytes = 0,
      startTime = '',
      revision = '',
      objects = 0,
      logicalClusterId: id = '',
    } = status
    if (phase !== 'Completed')
      return { snapshot: name, bytes, problem: `${phase}: ${complete?.message ?? 'no operator has looked at it yet'}` }
    const manifest = { takenAt: startTime, revision, objects, logicalCluster: { name: spec.logicalCluster, id } }
    return { snapshot: name, bytes, manifest }
  })
}
