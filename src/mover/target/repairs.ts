// What a final round has changed while it compared, and the second look at it: what was equal already was read once, and
// what was not is read again after it was flushed to disk.
import { smallDigest } from '#mover/files/content.ts'
import { FolderCache } from '#mover/files/folder-cache.ts'
import { closeFd, dropCache, isSystemError, openAt, openFlags, readLinkAt } from '#mover/files/libc.ts'
import {
  isSameAttributes,
  isSameTime,
  readAttributes,
  statOfFd,
  tryStatAt,
  type Metadata,
  type Stat,
} from '#mover/files/metadata.ts'
import { isMissing } from '#mover/files/missing.ts'
import type { NameSet } from '#mover/files/name-set.ts'
import type { Volume } from '#mover/files/volume.ts'
import { lostAndFound, namesIn } from '#mover/files/walk.ts'
import { namesOf, type WireEntry } from '#mover/wire/entries.ts'
import type { FileReceiver } from './file-receiver.ts'

export interface Repaired {
  readonly path: Buffer
  readonly entry: WireEntry
  /** Path of the first name, if this is a further name of a file. */
  readonly first?: Buffer
  /** The names that a folder has in the source. */
  readonly names?: NameSet
  /** The content was copied in this pass; it has not been compared. */
  readonly isContentNew?: boolean
}

/** Bound of what is remembered of a pass, bytes. A pass that changes more is followed by another whole pass. */
const maxBytes = 32 << 20

export class Repairs {
  readonly #list: Repaired[] = []
  #bytes = 0
  #isComplete = true

  add(repaired: Repaired): void {
    const { path, entry, first, names } = repaired
    const attributes = entry.attributes.reduce((sum, { name, value }) => sum + name.length + value.length + 200, 0)
    this.#bytes += 800 + path.length + (first?.length ?? 0) + attributes + (names?.bytes ?? 0)
    if (this.#bytes > maxBytes) this.giveUp()
    if (this.#isComplete) this.#list.push(repaired)
  }

  /** Not all repairs are known. */
  giveUp(): void {
    this.#isComplete = false
    this.#list.length = 0
  }

  /** All repairs; undefined if they were too many to remember. */
  get all(): readonly Repaired[] | undefined {
    return this.#isComplete ? this.#list : undefined
  }
}

export interface SecondLookOptions {
  readonly volume: Volume
  readonly files: FileReceiver
  /** Called for each entry whose content was not compared before, with the digest of the source. */
  readonly onCompared: (repaired: Repaired, digest: Buffer) => void
}

/**
 * Compares everything that was repaired with the entries of the source, and with new digests of its large files; false
 * if anything differs. Rejects if the round fails.
 */
export async function lookAgain(repairs: readonly Repaired[], options: SecondLookOptions): Promise<boolean> {
  using folders = new FolderCache(options.volume.fd)
  let isSame = true
  let number = 0
  const differs = (): void => void (isSame = false)
  for (const repaired of repairs) {
    try {
      if (!(await look(repaired, ++number, { ...options, folders, differs }))) return false
    } catch (error) {
      // Without root, a mover may have to change modes to read this: the next pass does.
      if (!isMissing(error) && !isSystemError(error, 'EACCES')) throw error
      return false
    }
  }
  await options.files.idle()
  return isSame
}

interface Look extends SecondLookOptions {
  readonly folders: FolderCache
  /** Called later, if contents differ. */
  readonly differs: () => void
}

async function look(repaired: Repaired, number: number, options: Look): Promise<boolean> {
  const { path, entry, first, names } = repaired
  const { volume, folders } = options
  if (names !== undefined) return isSameFolder(path.length === 0 ? volume.fd : open(folders, path), repaired, names)
  const { folder, name } = placeOf(folders, path)
  const found = tryStatAt(folder, name)
  if (found?.kind !== entry.kind) return false
  if (first !== undefined) {
    const place = placeOf(folders, first)
    return tryStatAt(place.folder, place.name)?.inode === found.inode
  }
  if (!isSameMetadata(entry, found) || !isSameAttributes(entry.attributes, readAttributes({ folder, name }).kept))
    return false
  if (entry.kind !== 'file') return isSameNode({ folder, name, entry, found })
  if (found.size !== entry.size) return false
  if (repaired.isContentNew !== true) return true
  const fd = openAt(folder, name, openFlags.read | openFlags.nonBlocking)
  const done = (digest: Buffer | undefined): void => {
    if (digest === undefined) options.differs()
    else options.onCompared(repaired, digest)
  }
  if (entry.digest === undefined) {
    await options.files.compare({ number, path, fd, size: entry.size, done })
    return true
  }
  try {
    dropCache(fd)
    done(smallDigest(fd, entry.size)?.equals(entry.digest) === true ? entry.digest : undefined)
    return true
  } finally {
    closeFd(fd)
  }
}

const itself = Buffer.from('.')

function open(folders: FolderCache, path: Buffer): number {
  return folders.open(namesOf(path))
}

function placeOf(folders: FolderCache, path: Buffer): { readonly folder: number; readonly name: Buffer } {
  const names = namesOf(path)
  const name = names.pop() as Buffer
  return { folder: folders.open(names), name }
}

function isSameFolder(at: number, { path, entry }: Repaired, names: NameSet): boolean {
  const folder = openAt(at, itself, openFlags.directory)
  try {
    const attributes = readAttributes({ folder }).kept
    if (!isSameMetadata(entry, statOfFd(folder)) || !isSameAttributes(entry.attributes, attributes)) return false
    let count = 0
    for (const name of namesIn(folder)) {
      if (path.length === 0 && name.equals(lostAndFound)) continue
      if (!names.has(name)) return false
      count++
    }
    return count === names.size
  } finally {
    closeFd(folder)
  }
}

export function isSameMetadata(wanted: Metadata, { kind, mode, uid, gid, modified }: Stat): boolean {
  const isSameMode = kind === 'symlink' || wanted.mode === mode
  return isSameMode && wanted.uid === uid && wanted.gid === gid && isSameTime(wanted.modified, modified)
}

export interface FoundNode {
  readonly folder: number
  readonly name: Buffer
  readonly entry: WireEntry
  readonly found: Stat
}

/** True if a symbolic link leads where that of the source does, and a device is the same one. */
export function isSameNode({ folder, name, entry, found }: FoundNode): boolean {
  if (entry.kind === 'symlink') return readLinkAt(folder, name).equals(entry.target)
  const isDevice = entry.kind === 'characterDevice' || entry.kind === 'blockDevice'
  return !isDevice || (found.device.major === entry.device.major && found.device.minor === entry.device.minor)
}
