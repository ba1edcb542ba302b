// Snapshots as files below one directory. Files and directories are opened without following symbolic links, so that a
// link in the directory leads nowhere.
import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, rename, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { requireKey, Source, StorageError, type ListedObject, type SnapshotStorage } from './storage.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants
const partial = '.partial-'
const readBytes = 256 * 1024

/**
 * The storage in `path` below `directory`, which must exist; `path` is made. `path`: empty, or as a key. Throws
 * StorageError for another path.
 */
export function fileStorage(directory: string, path: string): SnapshotStorage {
  if (path !== '') requireKey(path)
  const placeOf = (key: string): string[] => {
    requireKey(key)
    return [...(path === '' ? [] : path.split('/')), ...key.split('/')]
  }
  return {
    location: (key) => join(directory, ...placeOf(key)),
    put: async (key, bytes, signal) => {
      const source = new Source(bytes)
      return await told(() => put(directory, placeOf(key), source, signal)).catch((error: unknown) => {
        throw source.error ?? error
      })
    },
    get: (key, signal) => told(async () => await get(directory, placeOf(key), signal)),
    size: (key) =>
      told(async () => {
        const file = await existing(directory, placeOf(key))
        return file === undefined ? undefined : (await lstat(file)).size
      }),
    list: (folder, signal) => list(directory, path, folder, signal),
    delete: (key) =>
      told(async () => {
        const parts = placeOf(key)
        const folder = await existingFolder(directory, parts.slice(0, -1))
        if (folder === undefined) return
        await removePartial(folder, parts.at(-1) ?? '')
        await rm(join(folder, parts.at(-1) ?? ''), { force: true })
        await syncFolder(folder)
      }),
    check: () =>
      told(async () => {
        const folder = await makeFolder(directory, path === '' ? [] : path.split('/'))
        const probe = join(folder, `.probe-${randomBytes(6).toString('hex')}`)
        await (await open(probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)).close()
        await rm(probe, { force: true })
      }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

async function put(
  directory: string,
  parts: readonly string[],
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<{ bytes: number; checksum: string }> {
  const folder = await makeFolder(directory, parts.slice(0, -1))
  const name = parts.at(-1) ?? ''
  await removePartial(folder, name)
  const half = join(folder, `${name}${partial}${randomBytes(6).toString('hex')}`)
  const hash = createHash('sha256')
  let size = 0
  try {
    const handle = await open(half, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      for await (const chunk of bytes) {
        signal.throwIfAborted()
        hash.update(chunk)
        size += chunk.length
        await writeAll(handle, chunk)
      }
      signal.throwIfAborted()
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(half, join(folder, name))
    await syncFolder(folder)
  } catch (error) {
    await rm(half, { force: true })
    throw error
  }
  return { bytes: size, checksum: `sha256:${hash.digest('hex')}` }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length;) at += (await handle.write(chunk, at)).bytesWritten
}

async function get(
  directory: string,
  parts: readonly string[],
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const file = await existing(directory, parts)
  if (file === undefined) throw missing(join(directory, ...parts))
  const handle = await open(file, O_RDONLY | O_NOFOLLOW)
  return chunksOf(handle, signal)
}

async function* chunksOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(readBytes), 0, readBytes)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}

async function* list(
  directory: string,
  path: string,
  folder: string,
  signal: AbortSignal,
): AsyncGenerator<ListedObject> {
  if (folder !== '') requireKey(folder)
  const base = [...(path === '' ? [] : path.split('/'))]
  const walk = async function* (inside: readonly string[]): AsyncGenerator<ListedObject> {
    const place = await told(() => existingFolder(directory, [...base, ...inside]))
    if (place === undefined) return
    const entries = await told(() => readdir(place, { withFileTypes: true }))
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      signal.throwIfAborted()
      const key = [...inside, entry.name]
      if (entry.isDirectory()) yield* walk(key)
      else if (entry.isFile() && !entry.name.includes(partial) && !entry.name.startsWith('.'))
        yield { key: key.join('/'), bytes: (await lstat(join(place, entry.name))).size }
    }
  }
  yield* walk(folder === '' ? [] : folder.split('/'))
}

/** The file if it exists. Rejects with StorageError if it is no plain file, or a link is on the way. */
async function existing(directory: string, parts: readonly string[]): Promise<string | undefined> {
  const folder = await existingFolder(directory, parts.slice(0, -1))
  if (folder === undefined) return undefined
  const file = join(folder, parts.at(-1) ?? '')
  const found = await lstat(file).catch(ifMissing)
  if (found === undefined) return undefined
  if (!found.isFile()) throw refused(file, 'is not a plain file')
  return file
}

async function existingFolder(directory: string, parts: readonly string[]): Promise<string | undefined> {
  let folder = await base(directory)
  for (const one of parts) {
    folder = join(folder, one)
    const found = await lstat(folder).catch(ifMissing)
    if (found === undefined) return undefined
    if (!found.isDirectory()) throw refused(folder, 'is not a directory')
  }
  return folder
}

async function makeFolder(directory: string, parts: readonly string[]): Promise<string> {
  let folder = await base(directory)
  for (const one of parts) {
    folder = join(folder, one)
    await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    })
    if (!(await lstat(folder)).isDirectory()) throw refused(folder, 'is not a directory')
  }
  return folder
}

/** The directory itself may be a link: the admin has named it. */
async function base(directory: string): Promise<string> {
  return await realpath(directory)
}

async function removePartial(folder: string, name: string): Promise<void> {
  for (const entry of await readdir(folder))
    if (entry.startsWith(`${name}${partial}`)) await rm(join(folder, entry), { force: true })
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, O_RDONLY | O_DIRECTORY)
  await handle.sync().finally(() => handle.close())
}

function ifMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}

function missing(file: string): StorageError {
  return new StorageError('ObjectMissing', `there is no file "${file}"`)
}

function refused(path: string, why: string): StorageError {
  return new StorageError('PathRefused', `"${path}" ${why}; links are not followed`)
}

/** Runs the step; errors of the file system become StorageErrors. */
async function told<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    const { code = '', path = '' } = error as NodeJS.ErrnoException
    if (error instanceof StorageError || code === '') throw error
    const cause = { cause: error }
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new StorageError('StorageFull', 'there is no room left in the directory of snapshots', cause)
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
      throw new StorageError(
        'AccessDenied',
        `kcp may not write "${path}" (${code}): its user needs the right to`,
        cause,
      )
    if (code === 'ELOOP') throw refused(path, 'is a link')
    if (code === 'ENOENT') throw new StorageError('BucketMissing', `the directory "${path}" does not exist`, cause)
    throw new StorageError('StorageFailed', `the directory of snapshots fails: ${(error as Error).message}`, cause)
  }
}
