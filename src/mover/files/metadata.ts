// Metadata of an entry of a volume: what is read of it, what is compared, and how it is written.
import { isMissing } from './missing.ts'
import {
  changeMode,
  changeOwner,
  getAttribute,
  isSystemError,
  listAttributes,
  removeAttribute,
  setAttribute,
  setTimes,
  statAt,
  statFd,
  type AttributePlace,
  type Device,
  type Time,
} from './libc.ts'

export const kinds = ['directory', 'file', 'symlink', 'fifo', 'socket', 'characterDevice', 'blockDevice'] as const
export type EntryKind = (typeof kinds)[number]

export interface Attribute {
  readonly name: Buffer
  readonly value: Buffer
}

export interface Stat {
  readonly kind: EntryKind
  /** Permissions, with the bits for set-user-id, set-group-id and sticky. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly links: number
  readonly size: number
  /** Bytes that are allocated. */
  readonly allocated: number
  readonly accessed: Time
  readonly modified: Time
  /** Only of device nodes. */
  readonly device: Device
  /** Identifies the inode within the volume. */
  readonly inode: string
  /** Identifies the file system. */
  readonly fileSystem: string
  /** What statx says in `stx_attributes`. */
  readonly flags: number
}

export const statFlags = { immutable: 0x10, append: 0x20, encrypted: 0x800, verity: 0x100000 } as const

const kindOfType = new Map<number, EntryKind>([
  [0o04, 'directory'],
  [0o10, 'file'],
  [0o12, 'symlink'],
  [0o01, 'fifo'],
  [0o14, 'socket'],
  [0o02, 'characterDevice'],
  [0o06, 'blockDevice'],
])
export const typeBits: Readonly<Record<EntryKind, number>> = {
  directory: 0o040000,
  file: 0o100000,
  symlink: 0o120000,
  fifo: 0o010000,
  socket: 0o140000,
  characterDevice: 0o020000,
  blockDevice: 0o060000,
}

/** The metadata of a name in an open folder; undefined if there is none. */
export function tryStatAt(folder: number, name: Buffer): Stat | undefined {
  try {
    return decodeStat(statAt(folder, name))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function statOfFd(fd: number): Stat {
  return decodeStat(statFd(fd))
}

/** True if the open descriptor is that of a regular file. */
export function isFile(fd: number): boolean {
  return (statFd(fd).readUInt16LE(28) & 0o170000) === typeBits.file
}

/** Offsets are those of `struct statx`. */
function decodeStat(raw: Buffer): Stat {
  const mode = raw.readUInt16LE(28)
  return {
    kind: kindOfType.get(mode >> 12) ?? 'file',
    mode: mode & 0o7777,
    uid: raw.readUInt32LE(20),
    gid: raw.readUInt32LE(24),
    links: raw.readUInt32LE(16),
    size: number64(raw, 40),
    allocated: number64(raw, 48) * 512,
    accessed: timeAt(raw, 64),
    modified: timeAt(raw, 112),
    device: { major: raw.readUInt32LE(128), minor: raw.readUInt32LE(132) },
    inode: raw.toString('latin1', 32, 40),
    fileSystem: raw.toString('latin1', 136, 144),
    flags: raw.readUInt32LE(8),
  }
}

const number64 = (raw: Buffer, at: number): number => raw.readUInt32LE(at + 4) * 2 ** 32 + raw.readUInt32LE(at)
const timeAt = (raw: Buffer, at: number): Time => ({
  seconds: raw.readInt32LE(at + 4) * 2 ** 32 + raw.readUInt32LE(at),
  nanoseconds: raw.readUInt32LE(at + 8),
})

export const isSameTime = (a: Time, b: Time): boolean => a.seconds === b.seconds && a.nanoseconds === b.nanoseconds

/** Attributes that are copied. The others belong to a node or a file system: labels of SELinux, hashes of IMA. */
const keptAttributes = /^(user\.|trusted\.|security\.capability$|system\.posix_acl_(access|default)$)/
/** Attributes that belong to where a file is, which nobody misses. */
const localAttributes = /^(security\.(selinux|ima|evm|apparmor|SMACK)|trusted\.overlay\.|system\.nfs4_acl$|btrfs\.)/
/** Bound of all attributes of an entry, bytes. */
const maxAttributeBytes = 1 << 20

export interface Attributes {
  readonly kept: readonly Attribute[]
  /** Names of attributes that are not copied. */
  readonly left: readonly string[]
}

const none: Attributes = { kept: [], left: [] }

/** The attributes of an entry. A file that vanishes meanwhile has none. */
export function readAttributes(place: AttributePlace): Attributes {
  let names: Buffer[]
  try {
    names = listAttributes(place)
  } catch (error) {
    // A list beyond 64 KiB cannot be read by any program (E2BIG).
    if (isSystemError(error, 'E2BIG', 'ERANGE')) return { kept: [], left: ['more names than can be listed'] }
    if (isMissing(error) || isSystemError(error, 'ENOTSUP', 'EACCES', 'EPERM')) return none
    throw error
  }
  if (names.length === 0) return none
  return valuesOf(place, names)
}

function valuesOf(place: AttributePlace, names: readonly Buffer[]): Attributes {
  const kept: Attribute[] = []
  const left: string[] = []
  let bytes = 0
  for (const attribute of names.toSorted((a, b) => a.compare(b))) {
    const text = attribute.toString('latin1')
    if (localAttributes.test(text)) continue
    const value = keptAttributes.test(text) ? tryValue(place, attribute) : undefined
    bytes += attribute.length + (value?.length ?? 0)
    if (value === undefined || bytes > maxAttributeBytes) left.push(text)
    else kept.push({ name: attribute, value })
  }
  return { kept, left }
}

function tryValue(place: AttributePlace, attribute: Buffer): Buffer | undefined {
  try {
    return getAttribute(place, attribute)
  } catch (error) {
    if (isMissing(error) || isSystemError(error, 'ENODATA', 'EACCES', 'EPERM', 'E2BIG', 'ENOTSUP')) return undefined
    throw error
  }
}

/** The metadata that is kept. */
export interface Metadata {
  readonly kind: EntryKind
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly accessed: Time
  readonly modified: Time
  readonly attributes: readonly Attribute[]
}

export function isSameAttributes(a: readonly Attribute[], b: readonly Attribute[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ name, value }, i) => b[i]?.name.equals(name) === true && b[i].value.equals(value))
  )
}

/** What failed, and the reason as NotKept has it. */
export interface Lost {
  readonly reason: 'owner' | 'mode' | 'times' | 'attribute'
  readonly detail: string
}

/** Errors that say that this process, or this file system, cannot keep something. */
const refusals = ['EPERM', 'EACCES', 'ENOTSUP', 'EINVAL', 'ENOSYS', 'ENOSPC', 'E2BIG', 'ERANGE']

/**
 * Gives an open file (a descriptor of O_PATH will do) this metadata; `now` is what it has. Returns what could not be
 * kept. The order matters: a change of owner removes the set-user-id bit and capabilities, and an access list changes
 * the mode.
 */
export function applyMetadata(fd: number, wanted: Metadata, now: Metadata): Lost[] {
  const lost: Lost[] = []
  const attempt = (reason: Lost['reason'], detail: string, change: () => void): void => {
    try {
      change()
    } catch (error) {
      if (!isSystemError(error, ...refusals)) throw error
      lost.push({ reason, detail: `${detail}${error.code}` })
    }
  }
  let { mode, attributes } = now
  if (wanted.uid !== now.uid || wanted.gid !== now.gid) {
    attempt('owner', `${wanted.uid}:${wanted.gid}: `, () => {
      changeOwner(fd, wanted.uid, wanted.gid)
      mode = -1
      attributes = attributes.filter(({ name }) => name.toString('latin1') !== 'security.capability')
    })
  }
  applyAttributes(fd, wanted.attributes, attributes, attempt)
  const hasList = [...wanted.attributes, ...attributes].some(({ name }) => name.toString('latin1') === accessList)
  if (wanted.kind !== 'symlink' && (mode !== wanted.mode || hasList))
    attempt('mode', '', () => changeMode(fd, wanted.mode))
  attempt('times', '', () => setTimes(fd, wanted.accessed, wanted.modified))
  return lost
}

const accessList = 'system.posix_acl_access'

type Attempt = (reason: Lost['reason'], detail: string, change: () => void) => void

function applyAttributes(fd: number, wanted: readonly Attribute[], now: readonly Attribute[], attempt: Attempt): void {
  const find = (list: readonly Attribute[], name: Buffer) => list.find((one) => one.name.equals(name))
  for (const { name } of now)
    if (find(wanted, name) === undefined)
      attempt('attribute', `${name.toString('latin1')}: `, () => removeAttribute(fd, name))
  for (const { name, value } of wanted)
    if (!find(now, name)?.value.equals(value))
      attempt('attribute', `${name.toString('latin1')}: `, () => setAttribute(fd, name, value))
}
