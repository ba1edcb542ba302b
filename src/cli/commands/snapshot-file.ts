// Files with snapshots, as commands write them.
import { createWriteStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { KubeClient } from '#client/index.ts'
import { encrypted, snapshotPath } from '#snapshot/index.ts'
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
    await syncPath(dirname(file))
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

/** Resolves when the content of the file, or the names in the folder, are on disk. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

/** The snapshot of a logical cluster as it is now, encrypted for the recipients if there are any. `client`: its API. */
export async function snapshotNow(
  client: Pick<KubeClient, 'stream'>,
  recipients: readonly string[],
  signal: AbortSignal,
): Promise<Readable> {
  return await encryptedFor(await client.stream(snapshotPath, { signal }), recipients)
}

/** The bytes, encrypted for the recipients if there are any. */
export async function encryptedFor(bytes: AsyncIterable<Uint8Array>, recipients: readonly string[]): Promise<Readable> {
  const plain = Readable.from(bytes, { objectMode: false })
  return recipients.length === 0 ? plain : await encrypted(plain, recipients)
}

/** A size for people. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const kib = bytes / 1024
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`
}
