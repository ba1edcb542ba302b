// Walks a folder with everything below it, without following a link and without leaving the file system. Memory is one
// buffer of names and one descriptor for each folder on the way; folders are not read whole.
import { isMissing } from './missing.ts'
import { closeFd, isSystemError, openAt, openFlags, readEntries } from './libc.ts'
import { statOfFd, tryStatAt, type Stat } from './metadata.ts'

export interface Visit {
  /** The folder, open; of the volume itself: its own descriptor, and no name. */
  readonly folder: number
  readonly name: Buffer
  readonly stat: Stat
  readonly depth: number
  /** Path below the volume. */
  readonly path: () => Buffer
}

export type Step = { readonly entry: Visit } | { readonly left: true }

export interface WalkOptions {
  readonly maxDepth: number
  readonly maxPathBytes: number
  /** Called for what is not entered; may throw. */
  readonly onSkipped: (path: Buffer, reason: 'other file system' | 'unreadable' | 'too deep') => void
}

/** The folder of ext4 for what its check finds. */
export const lostAndFound = Buffer.from('lost+found')
const mountRoot = 0x2000
const entriesBufferBytes = 1 << 15

interface Level {
  readonly fd: number
  readonly buffer: Buffer
  /** Unread part of the buffer. */
  at: number
  end: number
  readonly pathBytes: number
}

/** Gives each entry before what is below it, and a mark when a folder is left. What vanishes meanwhile is left out. */
export function* walk(root: number, options: WalkOptions): Generator<Step, void> {
  const names: Buffer[] = []
  const levels: Level[] = []
  const pathOf = (name: Buffer) => (): Buffer => joinPath([...names, name])
  try {
    yield {
      entry: { folder: root, name: Buffer.alloc(0), stat: statOfFd(root), depth: 0, path: () => Buffer.alloc(0) },
    }
    levels.push(openLevel(root, undefined, 0))
    while (levels.length > 0) {
      const level = levels[levels.length - 1] as Level
      const name = nextName(level)
      if (name === undefined) {
        closeFd(level.fd)
        levels.pop()
        names.pop()
        yield { left: true }
        continue
      }
      if (levels.length === 1 && name.equals(lostAndFound)) continue
      const stat = tryStatAt(level.fd, name)
      if (stat === undefined) continue
      const path = pathOf(name)
      const visit: Visit = { folder: level.fd, name, stat, depth: levels.length, path }
      if (stat.kind !== 'directory') {
        yield { entry: visit }
        continue
      }
      const below = enter(level, visit, options)
      if (below === undefined) continue
      levels.push(below)
      yield { entry: visit }
      names.push(name)
    }
  } finally {
    for (const { fd } of levels) closeFd(fd)
  }
}

/** Opens a folder; undefined if it is not entered. */
function enter(level: Level, { name, stat, depth, path }: Visit, options: WalkOptions): Level | undefined {
  const pathBytes = level.pathBytes + name.length + 1
  if ((stat.flags & mountRoot) !== 0) options.onSkipped(path(), 'other file system')
  else if (depth >= options.maxDepth || pathBytes > options.maxPathBytes) options.onSkipped(path(), 'too deep')
  else
    try {
      return openLevel(level.fd, name, pathBytes)
    } catch (error) {
      if (isSystemError(error, 'EACCES', 'EPERM')) options.onSkipped(path(), 'unreadable')
      else if (!isMissing(error)) throw error
    }
  return undefined
}

const itself = Buffer.from('.')

function openLevel(folder: number, name: Buffer | undefined, pathBytes: number): Level {
  const fd = openFolder(folder, name ?? itself)
  return { fd, buffer: Buffer.allocUnsafe(entriesBufferBytes), at: 0, end: 0, pathBytes }
}

/** Opens a folder for reading, and leaves its access time if this process may. */
function openFolder(folder: number, name: Buffer): number {
  try {
    return openAt(folder, name, openFlags.directory | openFlags.noAccessTime)
  } catch (error) {
    if (!isSystemError(error, 'EPERM')) throw error
    return openAt(folder, name, openFlags.directory)
  }
}

/** The next name of a `linux_dirent64`, without `.` and `..`; undefined at the end. */
function nextName(level: Level): Buffer | undefined {
  for (;;) {
    if (level.at >= level.end) {
      level.at = 0
      level.end = readEntries(level.fd, level.buffer)
      if (level.end === 0) return undefined
    }
    const { at, buffer } = level
    level.at = at + buffer.readUInt16LE(at + 16)
    const from = at + 19
    const name = buffer.subarray(from, buffer.indexOf(0, from))
    const isDots = name[0] === 0x2e && (name.length === 1 || (name.length === 2 && name[1] === 0x2e))
    if (!isDots) return Buffer.from(name)
  }
}

/** All names of an open folder, a part at a time. The folder is read from its beginning. */
export function* namesIn(folder: number): Generator<Buffer, void> {
  const level = openLevel(folder, undefined, 0)
  try {
    for (let name = nextName(level); name !== undefined; name = nextName(level)) yield name
  } finally {
    closeFd(level.fd)
  }
}

export function joinPath(names: readonly Buffer[]): Buffer {
  const parts: Buffer[] = []
  for (const [i, name] of names.entries()) {
    if (i > 0) parts.push(slash)
    parts.push(name)
  }
  return Buffer.concat(parts)
}

const slash = Buffer.from('/')
