import { closeFd, isSystemError, openAt, openFlags } from './libc.ts'
import { isFile } from './metadata.ts'
import { isMissing } from './missing.ts'

/**
 * Opens a regular file for reading, without changing its access time where this process may; undefined if there is none
 * any more, or something else. A FIFO or a device in its place is not waited for.
 */
export function openContent(folder: number, name: Buffer): number | undefined {
  const flags = openFlags.read | openFlags.nonBlocking
  let fd: number
  try {
    fd = openAt(folder, name, flags | openFlags.noAccessTime)
  } catch (error) {
    if (isMissing(error) || isSystemError(error, 'ENXIO', 'ENODEV')) return undefined
    if (!isSystemError(error, 'EPERM')) throw error
    fd = openAt(folder, name, flags)
  }
  if (isFile(fd)) return fd
  closeFd(fd)
  return undefined
}
