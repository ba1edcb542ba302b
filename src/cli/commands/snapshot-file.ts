// Files with snapshots: how commands write and read them.
import { createReadStream, createWriteStream } from 'node:fs'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { KubeClient } from '#client/index.ts'
import {
  decrypted,
  encrypted,
  identitiesIn,
  readSnapshot,
  snapshotPath,
  type ReadLine,
  type SnapshotManifest,
} from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'

/**
 * Writes the bytes to a new file that only its owner reads: whole or not at all, and on disk when this resolves. Rejects
 * with ExitError if the file exists.
 */
export async function writeNewFile(file: string, bytes: Readable, signal: AbortSignal): Promise<void> {
  if (await exists(file)) throw new ExitError(`"${file}" exists already; -o names another file`)
  const half = `${file}.partial-${process.pid}`
  try {
    await pipeline(bytes, createWriteStream(half, { mode: 0o600, flags: 'wx', flush: true }), { signal })
    await rename(half, file)
    await syncFolder(dirname(file))
  } catch (error) {
    await rm(half, { force: true })
    throw error
  }
}

/** Whether there is something under this path. */
export async function exists(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  )
}

/** Resolves when the names in the folder are on disk. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

/** The snapshot of a logical cluster as it is now, encrypted for the recipients if there are any. `client`: its API. */
export async function snapshotNow(
  client: Pick<KubeClient, 'stream'>,
  recipients: readonly string[],
  signal: AbortSignal,
): Promise<Readable> {
  const plain = Readable.from(await client.stream(snapshotPath, { signal }), { objectMode: false })
  return recipients.length === 0 ? plain : await encrypted(plain, recipients)
}

/** The bytes of a snapshot in a file, decrypted with the keys in `identity`. Rejects with ExitError without the file. */
export async function openSnapshot(
  file: string,
  { identity }: { readonly identity?: string },
): Promise<AsyncIterable<Uint8Array>> {
  const found = await stat(file).catch(() => undefined)
  if (found?.isFile() !== true) throw new ExitError(`there is no file "${file}"`)
  const keys = identity === undefined ? [] : identitiesIn(await textOf(identity))
  return await decrypted(createReadStream(file), keys)
}

async function textOf(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ExitError(`cannot read "${file}": ${String(error)}`)
  })
}

/** Reads a snapshot to its end, which checks that it is whole. */
export async function readWhole(
  source: AsyncIterable<Uint8Array>,
  each?: (line: ReadLine) => void,
): Promise<SnapshotManifest> {
  let manifest: SnapshotManifest | undefined
  for await (const item of readSnapshot(source)) {
    if ('manifest' in item) manifest = item.manifest
    else each?.(item)
  }
  return manifest as SnapshotManifest
}

/** A size for people. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const kib = bytes / 1024
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`
}
