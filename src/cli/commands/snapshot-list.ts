// `kcp snapshot list [FOLDER]`: the snapshots in a folder, the newest first. It reads their manifests only.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readSnapshot, SnapshotError, type SnapshotManifest } from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { columns, documentText } from './output.ts'
import { openSnapshot, sizeText } from './snapshot-file.ts'

interface Flags {
  readonly identity?: string
  readonly output: 'table' | 'json' | 'yaml'
}

interface Listed {
  readonly file: string
  readonly bytes: number
  readonly manifest?: Omit<SnapshotManifest, 'initial' | 'deleted' | 'parts'>
  readonly problem?: string
}

/** Runs the command. */
export async function run(folder = '.', { output, ...flags }: Flags): Promise<void> {
  const names = await readdir(folder).catch(() => {
    throw new ExitError(`there is no folder "${folder}"`)
  })
  const found: Listed[] = []
  for (const name of names.filter((one) => /\.kcp\.tar(\.zst)?(\.age)?$/.test(one)))
    found.push(await listed(join(folder, name), flags))
  found.sort((a, b) => ((a.manifest?.takenAt ?? '') < (b.manifest?.takenAt ?? '') ? 1 : -1))
  if (output !== 'table') {
    process.stdout.write(documentText(found, output))
    return
  }
  if (found.length === 0) {
    console.error(`no snapshot (*.kcp.tar.zst) is in "${folder}"; the first one:  kcp snapshot create NAME`)
    return
  }
  const rows = found.map(({ file, bytes, manifest, problem = '' }) => [
    manifest?.logicalCluster.name ?? '',
    manifest?.takenAt ?? '',
    manifest?.revision ?? '',
    manifest === undefined ? '' : String(manifest.objects),
    sizeText(bytes),
    problem === '' ? file : `${file} (${problem})`,
  ])
  process.stdout.write(columns([['CLUSTER', 'TAKEN', 'REVISION', 'OBJECTS', 'SIZE', 'FILE'], ...rows]))
}

async function listed(file: string, flags: { readonly identity?: string }): Promise<Listed> {
  const { size: bytes } = await stat(file)
  try {
    for await (const item of readSnapshot(await openSnapshot(file, flags))) {
      if (!('manifest' in item)) break
      const { initial: _initial, deleted: _deleted, parts: _parts, ...manifest } = item.manifest
      return { file, bytes, manifest }
    }
    return { file, bytes, problem: 'it is empty' }
  } catch (error) {
    if (error instanceof SnapshotError) return { file, bytes, problem: error.message }
    throw error
  }
}
