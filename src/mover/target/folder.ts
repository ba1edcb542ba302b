// A folder of the target that is being filled. Its own metadata is set last, when nothing below it changes any more.
import { NameSet } from '#mover/files/name-set.ts'
import type { WireEntry } from '#mover/wire/entries.ts'

export interface TargetFolder {
  readonly fd: number
  readonly entry: WireEntry
  readonly parent: TargetFolder | undefined
  /** Path below the volume; empty for the volume itself. */
  readonly path: Buffer
  readonly depth: number
  /** Made in this round: it has nothing yet. */
  readonly isFresh: boolean
  /** Names that the source has. */
  readonly names: NameSet
  /** Files and folders below that are not complete. */
  pending: number
  hasEnded: boolean
  /** Names were made or removed in this pass. */
  isRepaired: boolean
}

export function openTargetFolder(
  fd: number,
  entry: WireEntry,
  parent: TargetFolder | undefined,
  isFresh: boolean,
): TargetFolder {
  if (parent !== undefined) parent.pending++
  return {
    fd,
    entry,
    parent,
    path: parent === undefined ? Buffer.alloc(0) : pathIn(parent, entry.name),
    depth: parent === undefined ? 0 : parent.depth + 1,
    isFresh,
    names: new NameSet(),
    pending: 0,
    hasEnded: false,
    isRepaired: isFresh,
  }
}

export function pathIn(folder: TargetFolder, name: Buffer): Buffer {
  return folder.path.length === 0 ? name : Buffer.concat([folder.path, slash, name])
}

const slash = Buffer.from('/')
