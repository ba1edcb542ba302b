// The one layout of objects as bytes: `{"kind":K,"apiVersion":V,"metadata":{...},...}` in this order; stored metadata
// has no resourceVersion. Because of the fixed order, a revision is inserted without decoding, and a list drops or
// replaces the head of its items.
import { Buffer } from 'node:buffer'
import { parseJsonText } from '#apimachinery/json/index.ts'
import {
  encodeJson,
  escapeSeparators,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type Revision,
} from '#apimachinery/meta/index.ts'
import { isTombstone, type EntryFacts } from '#store/watch-cache/index.ts'

const metadataKey = Buffer.from('"metadata":{')

/** Encodes an object for the store, in the layout above. Leaves out its resourceVersion. */
export function encodeObject(object: KubeObject): Buffer {
  const text = textOf(object, '')
  // This buffer is not from Node's pool: the store's event log keeps these bytes for long, and with them would keep the
  // whole pool slab of 64 KiB.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/**
 * The JSON of an object in the layout above; its resourceVersion, if it has one, is metadata's first member. Written
 * part by part: JavaScript enumerates members whose names are integers (`"1"`) before all others.
 */
export function layOut(object: KubeObject): string {
  const { resourceVersion } = object.metadata
  return textOf(object, resourceVersion === undefined ? '' : `"resourceVersion":${JSON.stringify(resourceVersion)}`)
}

/** The JSON of an object. `stamp`: the first member of metadata, or empty. */
function textOf(object: KubeObject, stamp: string): string {
  const { kind, apiVersion, metadata } = object
  let text = `{${headOf(kind, apiVersion)}"metadata":{${stamp}`
  let separator = stamp === '' ? '' : ','
  for (const name of Object.keys(metadata) as (keyof ObjectMeta)[]) {
    if (name === 'resourceVersion' || name === 'managedFields') continue
    const value = JSON.stringify(metadata[name]) as string | undefined
    if (value === undefined) continue
    text += `${separator}${JSON.stringify(name)}:${value}`
    separator = ','
  }
  // managedFields are last, where packed-managers.ts looks for them.
  const { managedFields } = metadata
  if (managedFields !== undefined) text += `${separator}"managedFields":${managersText(managedFields)}`
  text += '}'
  for (const name of Object.keys(object)) {
    if (name === 'kind' || name === 'apiVersion' || name === 'metadata') continue
    const value = JSON.stringify(object[name]) as string | undefined
    if (value !== undefined) text += `,${JSON.stringify(name)}:${value}`
  }
  return escapeSeparators(`${text}}`)
}

/** The JSON of sets of fields (fieldsV1) that many objects share. */
const textsOfSets = new WeakMap<object, string>()

function managersText(entries: readonly ManagedFieldsEntry[]): string {
  return `[${entries.map(managerText).join(',')}]`
}

function managerText(entry: ManagedFieldsEntry): string {
  const { fieldsV1 } = entry
  if (typeof fieldsV1 !== 'object' || fieldsV1 === null || !Object.isFrozen(fieldsV1)) return JSON.stringify(entry)
  // No string inside contains this separator, because quotes in strings are escaped.
  const [before = '', after = ''] = JSON.stringify({ ...entry, fieldsV1: 0 }).split('"fieldsV1":0')
  return `${before}"fieldsV1":${textOfSet(fieldsV1)}${after}`
}

/** The cached text of a frozen set of fields, which cannot change. */
function textOfSet(fields: object): string {
  let text = textsOfSets.get(fields)
  if (text === undefined) textsOfSets.set(fields, (text = JSON.stringify(fields)))
  return text
}

/** Offset of the first member of metadata. Throws for bytes that are not in the layout above. */
function metadataOffset(bytes: Buffer): number {
  const at = bytes.indexOf(metadataKey)
  if (at < 0) throw new Error('the object bytes have no metadata')
  return at + metadataKey.length
}

/**
 * Throws an Error for a value that another program than kcp has written: one that is neither an object in the layout
 * above nor a tombstone.
 */
export function requireObjectBytes(value: Uint8Array): void {
  if (isTombstone(value)) return
  const bytes = asBuffer(value)
  const { kind, apiVersion, metadata } = parseJsonText(bytes.toString()) as Partial<KubeObject>
  if (typeof kind !== 'string' || typeof apiVersion !== 'string' || typeof metadata?.uid !== 'string')
    throw new Error('the payload is not an object')
  const layout = Buffer.from(`{${headOf(kind, apiVersion)}"metadata":{`)
  if (!bytes.subarray(0, layout.length).equals(layout)) throw new Error('the payload was not written by kcp')
}

/** The same bytes, seen as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Inserts the revision as metadata's first member, or replaces the revision that is there. */
export function stampRevision(value: Uint8Array, revision: Revision): Buffer {
  const bytes = asBuffer(value)
  const at = metadataOffset(bytes)
  const rest = afterStamp(bytes, at)
  const stamp = `"resourceVersion":"${revision}"${bytes[rest] === 0x7d ? '' : ','}`
  const result = Buffer.allocUnsafeSlow(at + stamp.length + bytes.length - rest)
  bytes.copy(result, 0, 0, at)
  result.write(stamp, at, 'latin1')
  bytes.copy(result, at + stamp.length, rest)
  return result
}

const stampStart = Buffer.from('"resourceVersion":"')

/** Offset of the first member after the stamp at `at`; `at` itself if there is no stamp. */
function afterStamp(bytes: Buffer, at: number): number {
  const until = Math.min(at + stampStart.length, bytes.length)
  if (bytes.compare(stampStart, 0, stampStart.length, at, until) !== 0) return at
  const end = bytes.indexOf(0x22, at + stampStart.length) + 1
  return bytes[end] === 0x2c ? end + 1 : end
}

/** Decodes an object. */
export function decodeObject(bytes: Uint8Array): KubeObject {
  return parseJsonText(asBuffer(bytes).toString()) as unknown as KubeObject
}

/** Decodes the metadata of an object; the rest of it, however large, is skipped. */
export function decodeMetadata(bytes: Uint8Array): ObjectMeta {
  const buffer = asBuffer(bytes)
  const from = metadataOffset(buffer) - 1
  return parseJsonText(buffer.toString('utf8', from, endOfObject(buffer, from).at)) as ObjectMeta
}

/** True if an object in this layout has the apiVersion. */
export function hasApiVersion(bytes: Uint8Array, apiVersion: string): boolean {
  const head = `{${headOf(kindOf(bytes), apiVersion)}`
  return asBuffer(bytes).toString('latin1', 0, head.length) === head
}

/** The kind of an object, without decoding the object. */
export function kindOf(bytes: Uint8Array): string {
  // Kinds are identifiers: no character is escaped.
  const start = '{"kind":"'.length
  const buffer = asBuffer(bytes)
  return buffer.toString('latin1', start, buffer.indexOf(0x22, start))
}

const managersStart = Buffer.from(',"managedFields":[')

/**
 * Like decodeMetadata, but skips managedFields: they are as large as the rest of the metadata, and readFacts runs for
 * every object.
 */
function decodeOwnMetadata(bytes: Uint8Array): ObjectMeta {
  const buffer = asBuffer(bytes)
  const { from, to } = ownMetadata(buffer)
  return parseJsonText(`${buffer.toString('utf8', from, to)}}`) as ObjectMeta
}

/**
 * The range of metadata without its managedFields, which are its last member: from metadata's opening brace to the
 * comma before managedFields or, without managedFields, to metadata's closing brace.
 */
function ownMetadata(bytes: Buffer): { from: number; to: number } {
  const from = metadataOffset(bytes) - 1
  const managers = bytes.indexOf(managersStart, from)
  const { at, depth } = endOfObject(bytes, from, managers < 0 ? bytes.length : managers)
  if (depth === 1) return { from, to: at }
  // The managedFields that were found are nested deeper, so they are not the managedFields of the object.
  return { from, to: (depth === 0 ? at : endOfObject(bytes, from).at) - 1 }
}

/** The bytes with these annotations added. The rest of the object is neither decoded nor encoded. */
export function annotateBytes(bytes: Uint8Array, annotations: Readonly<Record<string, string>>): Buffer {
  const buffer = asBuffer(bytes)
  const { from, to } = ownMetadata(buffer)
  const metadata = parseJsonText(`${buffer.toString('utf8', from, to)}}`) as ObjectMeta
  metadata.annotations = { ...metadata.annotations, ...annotations }
  const text = encodeJson(metadata).slice(0, -1)
  return Buffer.concat([buffer.subarray(0, from), Buffer.from(text), buffer.subarray(to)])
}

const [quote, backslash, openBrace, closeBrace] = [0x22, 0x5c, 0x7b, 0x7d]

/**
 * The end of the JSON object that begins at `from`: the offset after its closing brace, and depth 0. If it ends after
 * `until`: `until`, and the depth there. Throws an Error if the bytes end before.
 */
function endOfObject(bytes: Buffer, from: number, until = bytes.length): { at: number; depth: number } {
  let depth = 0
  for (let i = from; i < until; i++) {
    const byte = bytes[i]
    if (byte === openBrace) depth++
    else if (byte === closeBrace) {
      if (--depth === 0) return { at: i + 1, depth }
    } else if (byte === quote) {
      // Skip the string; the byte after a backslash does not end it.
      for (i++; i < bytes.length && bytes[i] !== quote; i++) if (bytes[i] === backslash) i++
    }
  }
  if (until < bytes.length) return { at: until, depth }
  throw new Error('the metadata in the object bytes is cut off')
}

const none: readonly string[] = []

/** The facts of an entry that selectors and garbage collection need. */
export function readFacts(bytes: Uint8Array): EntryFacts {
  const { uid = '', labels, ownerReferences } = decodeOwnMetadata(bytes)
  // Objects without owners, which are most, share the empty list.
  if (ownerReferences === undefined) return { uid, labels, ownerUids: none, blockedUids: none }
  const blocked = ownerReferences.filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true)
  const uidsOf = (owners: typeof ownerReferences): string[] => owners.map((owner) => owner.uid)
  return { uid, labels, ownerUids: uidsOf(ownerReferences), blockedUids: blocked.length === 0 ? none : uidsOf(blocked) }
}

/** `"kind":"K","apiVersion":"V",`: the head after the opening brace, which `replaceHead` drops or replaces. */
export function headOf(kind: string, apiVersion: string): string {
  return `"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`
}

/** Offset of `"metadata"`. It is the same for most objects of a kind, so the previous offset is tried first. */
export function metadataStart(bytes: Buffer, guess: number): number {
  const fits = guess > 0 && bytes[guess - 1] === 0x2c && startsAt(bytes, guess)
  return fits ? guess : bytes.indexOf(metadataKey)
}

function startsAt(bytes: Buffer, at: number): boolean {
  for (let i = 0; i < metadataKey.length; i++) if (bytes[at + i] !== metadataKey[i]) return false
  return true
}

/** The bytes with `head` between the opening brace and metadata. The head is empty for items of built-in lists. */
export function replaceHead(bytes: Uint8Array, head: string): Buffer {
  const source = asBuffer(bytes)
  const from = source.indexOf(metadataKey)
  const result = Buffer.allocUnsafe(1 + head.length + source.length - from)
  result[0] = 0x7b
  result.write(head, 1, 'latin1')
  source.copy(result, 1 + head.length, from)
  return result
}
