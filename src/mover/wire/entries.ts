// Entries of a volume as they travel: each folder begins with its own entry and ends with a mark.
import { kinds, typeBits, type Attribute, type EntryKind, type Metadata, type Stat } from '#mover/files/metadata.ts'
import type { Device, Time } from '#mover/files/libc.ts'
import { type ByteReader, type ByteWriter, violated } from './bytes.ts'

export interface WireEntry extends Metadata {
  /** Empty for the folder of the volume itself. */
  readonly name: Buffer
  readonly size: number
  readonly device: Device
  /** Of symbolic links. */
  readonly target: Buffer
  /** Number of an inode with several names; 0 for all others. */
  readonly link: number
  /** No further name of this inode follows. */
  readonly isLastLink: boolean
  /** SHA-256 of the content of small files, in passes that compare. */
  readonly digest: Buffer | undefined
}

/** Largest content whose digest is in the entry, and which is sent in one frame. */
export const smallFileBytes = 1 << 17
export const digestBytes = 32

const marks = { end: 0, entry: 1 } as const
const flags = { lastLink: 1, digest: 2 } as const

export interface EntryExtras {
  readonly name: Buffer
  readonly target?: Buffer
  readonly link: number
  readonly isLastLink: boolean
  readonly digest?: Buffer | undefined
}

export function writeEntry(to: ByteWriter, stat: Stat, attributes: readonly Attribute[], extras: EntryExtras): void {
  const { name, target, link, isLastLink, digest } = extras
  to.u8(marks.entry).u8(name.length).raw(name)
  to.u8(kinds.indexOf(stat.kind)).u16(stat.mode).u32(stat.uid).u32(stat.gid)
  writeTime(to, stat.modified)
  writeTime(to, stat.accessed)
  to.u8((isLastLink ? flags.lastLink : 0) | (digest === undefined ? 0 : flags.digest)).u32(link)
  if (stat.kind === 'file') to.size(stat.size)
  else if (stat.kind === 'symlink') to.bytes16(target ?? Buffer.alloc(0))
  else if (stat.kind === 'characterDevice' || stat.kind === 'blockDevice')
    to.u32(stat.device.major).u32(stat.device.minor)
  to.u16(attributes.length)
  for (const attribute of attributes) to.u8(attribute.name.length).raw(attribute.name).bytes32(attribute.value)
  if (digest !== undefined) to.raw(digest)
}

/** The mark after the last entry of a folder. */
export function writeEnd(to: ByteWriter): void {
  to.u8(marks.end)
}

const noDevice: Device = { major: 0, minor: 0 }
const nothing = Buffer.alloc(0)
const maxAttributes = 5000

/** The next entry, or undefined for the end of a folder. Throws ProtocolViolated. */
export function readEntry(from: ByteReader): WireEntry | undefined {
  const mark = from.u8()
  if (mark === marks.end) return undefined
  if (mark !== marks.entry) throw violated('an entry that is none')
  const name = Buffer.from(from.raw(from.u8()))
  const kind = readKind(from.u8())
  const mode = from.u16()
  if (mode > 0o7777) throw violated('a mode that is none')
  const [uid, gid] = [from.u32(), from.u32()]
  const [modified, accessed] = [readTime(from), readTime(from)]
  const bits = from.u8()
  const link = from.u32()
  const size = kind === 'file' ? from.size() : 0
  const target = kind === 'symlink' ? Buffer.from(from.bytes16()) : nothing
  const isDevice = kind === 'characterDevice' || kind === 'blockDevice'
  const device = isDevice ? { major: from.u32(), minor: from.u32() } : noDevice
  const attributes = readAttributeList(from)
  const digest = (bits & flags.digest) === 0 ? undefined : Buffer.from(from.raw(digestBytes))
  const isLastLink = (bits & flags.lastLink) !== 0
  return { name, kind, mode, uid, gid, modified, accessed, size, target, device, attributes, link, isLastLink, digest }
}

function readKind(index: number): EntryKind {
  const kind = kinds[index]
  if (kind === undefined || !(kind in typeBits)) throw violated('an entry of an unknown kind')
  return kind
}

function readAttributeList(from: ByteReader): readonly Attribute[] {
  const count = from.u16()
  if (count === 0) return []
  if (count > maxAttributes) throw violated(`an entry with ${count} attributes`)
  return Array.from({ length: count }, () => {
    const name = Buffer.from(from.raw(from.u8()))
    if (name.length === 0 || name.includes(0)) throw violated('an attribute without a name')
    return { name, value: Buffer.from(from.bytes32()) }
  })
}

export function writeTime(to: ByteWriter, { seconds, nanoseconds }: Time): void {
  to.signed(seconds).u32(nanoseconds)
}

export function readTime(from: ByteReader): Time {
  const time = { seconds: from.signed(), nanoseconds: from.u32() }
  if (time.nanoseconds >= 1e9) throw violated('a time that is none')
  return time
}

/** True for a name that may be in a folder: neither a way out of it nor a path. */
export function isName(name: Buffer): boolean {
  const text = name.length > 2 ? '' : name.toString('latin1')
  return (
    name.length > 0 && name.length <= 255 && !name.includes(0) && !name.includes(0x2f) && text !== '.' && text !== '..'
  )
}

/** Bounds of paths: each folder on the way to an entry stays open while the mover is below it. */
export const maxDepth = 1000
export const maxPathBytes = 60_000

/** The names of a path. Throws ProtocolViolated for paths that leave the volume. */
export function namesOf(path: Buffer): Buffer[] {
  const names: Buffer[] = []
  for (let from = 0; from <= path.length;) {
    const slash = path.indexOf(0x2f, from)
    const end = slash < 0 ? path.length : slash
    const name = path.subarray(from, end)
    if (!isName(name) || names.length > maxDepth) throw violated(`a path that leaves the volume: ${printable(path)}`)
    names.push(name)
    from = end + 1
  }
  return names
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** A path for people: bytes that are no printable UTF-8 as `\xNN`; at most 1,024 characters. */
export function printable(path: Buffer): string {
  let text: string
  try {
    text = decoder.decode(path)
  } catch {
    text = path.toString('latin1').replace(/[\x80-\xff]/g, escaped)
  }
  const clean = text
    .replace(/\\/g, '\\\\')
    .replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, escaped)
  return clean.length > 1024 ? `${clean.slice(0, 1000)}...` : clean
}

const escaped = (character: string): string => {
  const code = character.charCodeAt(0)
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
}
