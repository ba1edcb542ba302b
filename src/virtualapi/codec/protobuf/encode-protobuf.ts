// Encodes responses with objects of built-in kinds as kube-apiserver does: `k8s\0` and an envelope around the message.
import { Buffer } from 'node:buffer'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { encodeMessage } from './encode-message.ts'
import { messageNamed, messageOfKind } from './message-table.ts'
import { varintBytes, WireWriter } from './wire-writer.ts'

const magic = Buffer.from('k8s\0', 'latin1')

/** The protobuf form of an object or a list with kind and apiVersion; undefined for kinds without one. */
export function encodeProtobuf(object: JsonObject): Buffer | undefined {
  // The lists of the core group in discovery have no apiVersion.
  const { kind, apiVersion = '' } = object
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return undefined
  const type = messageOfKind(apiVersion === '' ? 'v1' : apiVersion, kind)
  if (type === undefined) return undefined
  const writer = new WireWriter()
  writeHead(writer, apiVersion, kind)
  writer.tag(2, 2)
  writer.nested(() => encodeMessage(writer, type, object))
  writeTail(writer)
  return writer.bytes()
}

/** True if objects of this kind have a protobuf form. */
export function hasProtobuf(apiVersion: string, kind: string): boolean {
  return messageOfKind(apiVersion, kind) !== undefined
}

/**
 * One encoded item of a list, for the space between the two parts of `protobufListFrame`. Throws an Error for a kind
 * without a protobuf form.
 */
export function encodeListItem(object: JsonObject, { apiVersion, kind }: { apiVersion: string; kind: string }): Buffer {
  const type = messageOfKind(apiVersion, kind)
  if (type === undefined) throw new Error(`kind "${kind}" of "${apiVersion}" has no protobuf form`)
  const writer = new WireWriter()
  writer.tag(2, 2)
  writer.nested(() => encodeMessage(writer, type, object))
  return writer.bytes()
}

/** The bytes before and after the encoded items of a list. `kind`: the kind of the list. */
export function protobufListFrame(
  { apiVersion, kind, metadata }: { apiVersion: string; kind: string; metadata: JsonValue },
  itemBytes: number,
): { readonly before: Buffer; readonly after: Buffer } {
  const meta = new WireWriter()
  meta.tag(1, 2)
  meta.nested(() => encodeMessage(meta, messageNamed('meta.v1.ListMeta'), metadata as JsonObject))
  const listMeta = meta.bytes()
  const head = new WireWriter()
  writeHead(head, apiVersion, kind)
  head.tag(2, 2)
  head.unsigned(listMeta.length + itemBytes)
  head.raw(listMeta)
  const tail = new WireWriter()
  writeTail(tail)
  return { before: head.bytes(), after: tail.bytes() }
}

/**
 * A watch event: the length of the event in four bytes, then its type and the object. `object`: the result of
 * encodeProtobuf.
 */
export function protobufWatchEvent(type: string, object: Uint8Array): Buffer {
  // RawExtension: the bytes of the object in field 1.
  const inner = 1 + varintBytes(object.length) + object.length
  const writer = new WireWriter()
  writer.tag(1, 2)
  writer.string(type)
  writer.tag(2, 2)
  writer.unsigned(inner)
  writer.tag(1, 2)
  writer.sized(object)
  const event = writer.bytes()
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(event.length)
  return Buffer.concat([length, event])
}

/** runtime.Unknown: 1 typeMeta {1 apiVersion, 2 kind}, 2 raw, 3 contentEncoding, 4 contentType. */
function writeHead(writer: WireWriter, apiVersion: string, kind: string): void {
  writer.raw(magic)
  writer.tag(1, 2)
  writer.nested(() => {
    writer.tag(1, 2)
    writer.string(apiVersion)
    writer.tag(2, 2)
    writer.string(kind)
  })
}

function writeTail(writer: WireWriter): void {
  for (const field of [3, 4]) {
    writer.tag(field, 2)
    writer.unsigned(0)
  }
}
