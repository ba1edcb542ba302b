// Where a backup of all logical clusters is: a folder, or the objects of a bucket below a prefix.
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isStorageError } from '#snapshot/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { exists, syncPath } from './snapshot-file.ts'
import { isBucketUrl, openBucket } from './snapshot-places.ts'

export interface BackupPlace {
  /** Stores a file of the backup, whole or not at all; returns its size in bytes. */
  put(file: string, bytes: Readable, signal: AbortSignal): Promise<number>
  /** Stores the index last, which makes a backup of what was put. */
  complete(index: string, signal: AbortSignal): Promise<void>
  /** Removes what a backup that was broken off has left, as far as nobody could take it for one. */
  abandon(): Promise<void>
}

export interface BackupSource {
  /** The text of the index; undefined if there is none. */
  index(signal: AbortSignal): Promise<string | undefined>
  open(file: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}

const indexFile = 'backup.json'

/** Begins a backup in a folder or `s3://bucket/prefix`. Rejects with ExitError if there is one already. */
export async function beginBackup(text: string, signal: AbortSignal): Promise<BackupPlace> {
  return isBucketUrl(text) ? await beginInBucket(text, signal) : await beginInFolder(text)
}

/** Files that are flushed to disk together: thousands of small files wait for the disk a few times only. */
const flushedTogether = 64

async function beginInFolder(output: string): Promise<BackupPlace> {
  if (await exists(output)) throw new ExitError(`"${output}" exists already; -o names another folder`)
  const half = `${output}.partial-${process.pid}`
  await mkdir(join(half, 'clusters'), { recursive: true, mode: 0o700 })
  let unflushed: string[] = []
  const flush = async (): Promise<void> => {
    const files = unflushed
    unflushed = []
    await Promise.all(files.map(syncPath))
  }
  return {
    async put(file, bytes, signal) {
      const target = createWriteStream(join(half, file), { mode: 0o600, flags: 'wx' })
      await pipeline(bytes, target, { signal })
      unflushed.push(join(half, file))
      if (unflushed.length >= flushedTogether) await flush()
      return target.bytesWritten
    },
    async complete(index) {
      await flush()
      await syncPath(join(half, 'clusters'))
      await writeFile(join(half, indexFile), index, { mode: 0o600, flush: true })
      await syncPath(half)
      await rename(half, output)
      await syncPath(dirname(output))
    },
    abandon: () => rm(half, { recursive: true, force: true }),
  }
}

async function beginInBucket(text: string, signal: AbortSignal): Promise<BackupPlace> {
  const { storage, key } = await openBucket(text)
  if (key === '') throw new UsageError(`"${text}" names no place in the bucket: s3://BUCKET/PREFIX`)
  if ((await storage.size(`${key}/${indexFile}`, signal)) !== undefined)
    throw new ExitError(`"${text}" has a backup already; -o names another place`)
  return {
    put: async (file, bytes, life) => (await storage.put(`${key}/${file}`, bytes, life)).bytes,
    async complete(index, life) {
      await storage.put(`${key}/${indexFile}`, oneChunk(index), life)
    },
    // Without an index it is no backup, and the next one to the same place replaces it.
    abandon: () => Promise.resolve(),
  }
}

async function* oneChunk(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text))
}

/** The backup in a folder or `s3://bucket/prefix`. */
export async function openBackup(text: string): Promise<BackupSource> {
  if (!isBucketUrl(text))
    return {
      index: async () => await readFile(join(text, indexFile), 'utf8').catch(() => undefined),
      async open(file) {
        if (!(await exists(join(text, file)))) throw new ExitError(`there is no file "${join(text, file)}"`)
        return createReadStream(join(text, file))
      },
    }
  const { storage, key } = await openBucket(text)
  return {
    async index(signal) {
      try {
        const chunks: Uint8Array[] = []
        for await (const chunk of await storage.get(`${key}/${indexFile}`, signal)) chunks.push(chunk)
        return Buffer.concat(chunks).toString()
      } catch (error) {
        if (isStorageError(error, 'ObjectMissing')) return undefined
        throw error
      }
    },
    open: (file, signal) => storage.get(`${key}/${file}`, signal),
  }
}
