// Removes what the source does not have, without following a link.
import { closeFd, openAt, openFlags, removeDirectoryAt, unlinkAt } from '#mover/files/libc.ts'
import { tryStatAt } from '#mover/files/metadata.ts'
import { isMissing } from '#mover/files/missing.ts'
import { namesIn } from '#mover/files/walk.ts'

/** Removes a name with everything below it; returns how many entries. Throws SystemError. */
export function removeTree(folder: number, name: Buffer): number {
  const stat = tryStatAt(folder, name)
  if (stat === undefined) return 0
  if (stat.kind !== 'directory') {
    unlinkAt(folder, name)
    return 1
  }
  let removed = 0
  const fd = openAt(folder, name, openFlags.directory)
  try {
    // A folder may skip names while others are removed: it is read until it is empty.
    for (let before = -1; before !== removed;) {
      before = removed
      for (const below of namesIn(fd)) removed += removeTree(fd, below)
    }
  } finally {
    closeFd(fd)
  }
  try {
    removeDirectoryAt(folder, name)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  return removed + 1
}
