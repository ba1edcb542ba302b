// The calls of the C library that Node's file system module lacks: files by the descriptor of their folder, extended
// attributes, device nodes, holes, times in nanoseconds. All of them block. Only movers load this module.
import koffi from 'koffi'
import { constants } from 'node:os'

const library = koffi.load('libc.so.6')

interface Call {
  (...values: unknown[]): unknown
  /** The last argument is a callback. */
  readonly async: (...values: unknown[]) => void
}

const bind = (name: string, result: string, args: readonly string[]): Call =>
  library.func(name, result, [...args]) as Call

const path = 'const void *'
const out = 'void *'
const calls = {
  openat: bind('openat', 'int', ['int', path, 'int', 'uint32']),
  close: bind('close', 'int', ['int']),
  statx: bind('statx', 'int', ['int', path, 'int', 'uint32', out]),
  getdents64: bind('getdents64', 'int64', ['int', out, 'size_t']),
  readlinkat: bind('readlinkat', 'int64', ['int', path, out, 'size_t']),
  mkdirat: bind('mkdirat', 'int', ['int', path, 'uint32']),
  mknodat: bind('mknodat', 'int', ['int', path, 'uint32', 'uint64']),
  symlinkat: bind('symlinkat', 'int', [path, 'int', path]),
  linkat: bind('linkat', 'int', ['int', path, 'int', path, 'int']),
  unlinkat: bind('unlinkat', 'int', ['int', path, 'int']),
  fchownat: bind('fchownat', 'int', ['int', path, 'uint32', 'uint32', 'int']),
  chmod: bind('chmod', 'int', [path, 'uint32']),
  utimensat: bind('utimensat', 'int', ['int', path, path, 'int']),
  llistxattr: bind('llistxattr', 'int64', [path, out, 'size_t']),
  lgetxattr: bind('lgetxattr', 'int64', [path, path, out, 'size_t']),
  flistxattr: bind('flistxattr', 'int64', ['int', out, 'size_t']),
  fgetxattr: bind('fgetxattr', 'int64', ['int', path, out, 'size_t']),
  setxattr: bind('setxattr', 'int', [path, path, path, 'size_t', 'int']),
  removexattr: bind('removexattr', 'int', [path, path]),
  lseek: bind('lseek', 'int64', ['int', 'int64', 'int']),
  fallocate: bind('fallocate', 'int', ['int', 'int', 'int64', 'int64']),
  syncfs: bind('syncfs', 'int', ['int']),
  posix_fadvise: bind('posix_fadvise', 'int', ['int', 'int64', 'int64', 'int']),
  pread: bind('pread', 'int64', ['int', out, 'size_t', 'int64']),
  pwrite: bind('pwrite', 'int64', ['int', path, 'size_t', 'int64']),
} as const

const atEmptyPath = 0x1000
const atNoFollow = 0x100
const atRemoveDir = 0x200
export const seekData = 3
export const seekHole = 4
const seekEnd = 2
const punchHole = 0x02
const keepSize = 0x01
const dontNeed = 4

export const openFlags = {
  read: 0,
  write: 1,
  readWrite: 2,
  create: 0o100,
  exclusive: 0o200,
  truncate: 0o1000,
  nonBlocking: 0o4000,
  directory: process.arch === 'arm64' ? 0o40000 : 0o200000,
  noFollow: process.arch === 'arm64' ? 0o100000 : 0o400000,
  noAccessTime: 0o1000000,
  closeOnExec: 0o2000000,
  path: 0o10000000,
} as const

/** A call failed. `code` is the name of the error, such as `ENOENT`. */
export class SystemError extends Error {
  readonly code: string
  readonly call: string
  constructor(call: string, errno: number) {
    const code = names.get(errno) ?? `E${errno}`
    super(`${call}: ${code}`)
    this.code = code
    this.call = call
  }
}

const names = new Map([...Object.entries(constants.errno)].map(([name, value]) => [value, name]))
names.set(constants.errno.EOPNOTSUPP, 'ENOTSUP')

export function isSystemError(error: unknown, ...codes: readonly string[]): error is Error & { code: string } {
  return error instanceof Error && codes.includes((error as { code?: string }).code ?? '')
}

/** The result of a call; throws SystemError for -1. */
function checked(name: string, result: unknown): number {
  if (Number(result) < 0) throw new SystemError(name, koffi.errno())
  return Number(result)
}

// Buffers for the NUL-terminated strings that calls take. Every call can reuse them: the calls block, so they never
// overlap.
const scratch = [Buffer.alloc(66_000), Buffer.alloc(66_000), Buffer.alloc(512)] as const

function text(bytes: Buffer, room: 0 | 1 | 2 = 0): Buffer {
  const to = scratch[room]
  if (bytes.length >= to.length) throw new SystemError('path', constants.errno.ENAMETOOLONG)
  to.set(bytes)
  to[bytes.length] = 0
  return to
}

/** The path in /proc of an open file, or of a name in an open folder: for calls that take a path and no descriptor. */
function procText(fd: number, name: Buffer | undefined, room: 0 | 1): Buffer {
  const to = scratch[room]
  const length = to.write(name === undefined ? `/proc/self/fd/${fd}` : `/proc/self/fd/${fd}/`, 'latin1')
  if (name !== undefined) to.set(name, length)
  to[length + (name?.length ?? 0)] = 0
  return to
}

/** Opens a name in an open folder; a symbolic link is never followed. Throws SystemError. */
export function openAt(folder: number, name: Buffer, flags: number, mode = 0): number {
  const all = flags | openFlags.noFollow | openFlags.closeOnExec
  return checked('open', calls.openat(folder, text(name), all, mode))
}

/** Opens a path as the process sees it. */
export function openPath(file: string, flags: number): number {
  return checked('open', calls.openat(-100, text(Buffer.from(file)), flags | openFlags.closeOnExec, 0))
}

export function closeFd(fd: number): void {
  calls.close(fd)
}

const statBuffer = Buffer.alloc(256)
const allFields = 0xfff

/** The raw statx of a name in a folder; the buffer is reused by the next call. Throws SystemError. */
export function statAt(folder: number, name: Buffer): Buffer {
  checked('stat', calls.statx(folder, text(name), atNoFollow, allFields, statBuffer))
  return statBuffer
}

const empty = Buffer.alloc(1)

/** The raw statx of an open file; the buffer is reused by the next call. */
export function statFd(fd: number): Buffer {
  checked('stat', calls.statx(fd, empty, atEmptyPath | atNoFollow, allFields, statBuffer))
  return statBuffer
}

/** Reads entries of an open folder into the buffer; returns how many bytes, 0 at the end. */
export function readEntries(fd: number, into: Buffer): number {
  return checked('readdir', calls.getdents64(fd, into, into.length))
}

const linkBuffer = Buffer.alloc(4097)

export function readLinkAt(folder: number, name: Buffer): Buffer {
  const length = checked('readlink', calls.readlinkat(folder, text(name), linkBuffer, linkBuffer.length))
  return Buffer.from(linkBuffer.subarray(0, length))
}

export function makeDirectoryAt(folder: number, name: Buffer, mode: number): void {
  checked('mkdir', calls.mkdirat(folder, text(name), mode))
}

/** Makes a FIFO, a socket or a device; `mode` includes the type. */
export function makeNodeAt(folder: number, name: Buffer, mode: number, device: Device): void {
  checked('mknod', calls.mknodat(folder, text(name), mode, deviceNumber(device)))
}

export interface Device {
  readonly major: number
  readonly minor: number
}

/** As `makedev` of the C library. */
function deviceNumber({ major, minor }: Device): bigint {
  const [a, b] = [BigInt(major), BigInt(minor)]
  return ((a & 0xfffn) << 8n) | ((a & ~0xfffn) << 32n) | (b & 0xffn) | ((b & ~0xffn) << 12n)
}

export function makeLinkAt(folder: number, name: Buffer, target: Buffer): void {
  checked('symlink', calls.symlinkat(text(target, 1), folder, text(name)))
}

/** Makes a hard link. If `name` is a symbolic link, the new name is one of the symbolic link, not of its target. */
export function linkAt(from: number, name: Buffer, folder: number, newName: Buffer): void {
  checked('link', calls.linkat(from, text(name), folder, text(newName, 1), 0))
}

export function unlinkAt(folder: number, name: Buffer): void {
  checked('unlink', calls.unlinkat(folder, text(name), 0))
}

export function removeDirectoryAt(folder: number, name: Buffer): void {
  checked('rmdir', calls.unlinkat(folder, text(name), atRemoveDir))
}

export function changeOwner(fd: number, uid: number, gid: number): void {
  checked('chown', calls.fchownat(fd, empty, uid, gid, atEmptyPath))
}

/** Changes the mode of an open file; a descriptor of O_PATH will do. */
export function changeMode(fd: number, mode: number): void {
  checked('chmod', calls.chmod(procText(fd, undefined, 0), mode))
}

export interface Time {
  /** Seconds since 1970; negative before. */
  readonly seconds: number
  readonly nanoseconds: number
}

const timesBuffer = Buffer.alloc(32)

function putTime(at: number, { seconds, nanoseconds }: Time): void {
  timesBuffer.writeUInt32LE(((seconds % 2 ** 32) + 2 ** 32) % 2 ** 32, at)
  timesBuffer.writeInt32LE(Math.floor(seconds / 2 ** 32), at + 4)
  timesBuffer.writeUInt32LE(nanoseconds, at + 8)
  timesBuffer.writeUInt32LE(0, at + 12)
}

/** Sets both times of an open file; a descriptor of O_PATH will do. */
export function setTimes(fd: number, accessed: Time, modified: Time): void {
  putTime(0, accessed)
  putTime(16, modified)
  checked('utimens', calls.utimensat(-100, procText(fd, undefined, 0), timesBuffer, 0))
}

/** A name in an open folder, an open folder itself, or a file that is open for reading. */
export type AttributePlace =
  { readonly folder: number; readonly name: Buffer } | { readonly folder: number } | { readonly file: number }

const listBuffer = Buffer.alloc(65_536)
/** The kernel allocates as many bytes as a call offers; most lists are short. */
const shortListBytes = 512

/** Names of the extended attributes. Throws SystemError. */
export function listAttributes(place: AttributePlace): Buffer[] {
  const list = (bytes: number): number =>
    checked(
      'listxattr',
      'file' in place
        ? calls.flistxattr(place.file, listBuffer, bytes)
        : calls.llistxattr(attributePath(place), listBuffer, bytes),
    )
  let length: number
  try {
    length = list(shortListBytes)
  } catch (error) {
    if (!isSystemError(error, 'ERANGE')) throw error
    length = list(listBuffer.length)
  }
  const found: Buffer[] = []
  for (let from = 0; from < length;) {
    const end = listBuffer.indexOf(0, from)
    found.push(Buffer.from(listBuffer.subarray(from, end)))
    from = end + 1
  }
  return found
}

const valueBuffer = Buffer.alloc(65_536)

export function getAttribute(place: AttributePlace, attribute: Buffer): Buffer {
  const name = text(attribute, 2)
  const result =
    'file' in place
      ? calls.fgetxattr(place.file, name, valueBuffer, valueBuffer.length)
      : calls.lgetxattr(attributePath(place), name, valueBuffer, valueBuffer.length)
  const length = checked('getxattr', result)
  return Buffer.from(valueBuffer.subarray(0, length))
}

/**
 * The path in /proc for the calls that do not follow links. /proc/self/fd/N is itself a link, so the path of an open
 * folder ends in `/.`, which leads through the link.
 */
function attributePath(place: { readonly folder: number; readonly name?: Buffer }): Buffer {
  return procText(place.folder, place.name ?? dot, 0)
}

const dot = Buffer.from('.')

/** Sets an attribute of an open file; a descriptor of O_PATH will do. */
export function setAttribute(fd: number, attribute: Buffer, value: Buffer): void {
  const bytes = value.length === 0 ? empty : value
  checked('setxattr', calls.setxattr(procText(fd, undefined, 0), text(attribute, 2), bytes, value.length, 0))
}

export function removeAttribute(fd: number, attribute: Buffer): void {
  checked('removexattr', calls.removexattr(procText(fd, undefined, 0), text(attribute, 2)))
}

/** Offset of the next data or hole; undefined if there is none up to the end. */
export function seekTo(fd: number, offset: number, what: typeof seekData | typeof seekHole): number | undefined {
  try {
    return checked('lseek', calls.lseek(fd, offset, what))
  } catch (error) {
    if (isSystemError(error, 'ENXIO')) return undefined
    throw error
  }
}

/** Size of an open file or block device. */
export function sizeOf(fd: number): number {
  return checked('lseek', calls.lseek(fd, 0, seekEnd))
}

/** Makes a range read as zeros and frees its space. Throws SystemError where that is not supported. */
export function punchHoleAt(fd: number, offset: number, length: number): void {
  checked('fallocate', calls.fallocate(fd, punchHole | keepSize, offset, length))
}

/** Writes everything of the file system to disk. It may take minutes, so it runs on a thread of koffi. */
export function syncFileSystem(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null, result: number): void => {
      if (error !== null) reject(error)
      else if (result < 0) reject(new SystemError('syncfs', constants.errno.EIO))
      else resolve()
    }
    calls.syncfs.async(fd, settle)
  })
}

/**
 * Drops the pages of an open file that the disk should have, so that the next read asks the disk: after a write to disk
 * has failed, the kernel keeps the page as if it were there. Pages that were not flushed stay.
 */
export function dropCache(fd: number): void {
  const errno = Number(calls.posix_fadvise(fd, 0, 0, dontNeed))
  if (errno !== 0) throw new SystemError('fadvise', errno)
}

/** Reads until the buffer is full or the file ends; returns how many bytes. */
export function readAt(fd: number, into: Buffer, offset: number): number {
  let done = 0
  while (done < into.length) {
    const got = checked(
      'read',
      calls.pread(fd, done === 0 ? into : into.subarray(done), into.length - done, offset + done),
    )
    if (got === 0) break
    done += got
  }
  return done
}

export function writeAt(fd: number, from: Buffer, offset: number): void {
  let done = 0
  while (done < from.length)
    done += checked(
      'write',
      calls.pwrite(fd, done === 0 ? from : from.subarray(done), from.length - done, offset + done),
    )
}
