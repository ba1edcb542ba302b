// Decodes protobuf bodies of built-in kinds. client-go may send such bodies and does not fall back to JSON.
import { defaultMaxJsonValues } from '#apimachinery/json/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { isStatusError, unsupportedMediaType } from '#apimachinery/status/index.ts'
import { decodeMessage } from './decode-message.ts'
import { messageOfKind } from './message-table.ts'
import { messageJson } from './message-json.ts'
import { ValueBudget } from './value-budget.ts'
import { malformed, WireReader } from './wire-reader.ts'

export interface DecodedProtobuf {
  readonly apiVersion: string
  readonly kind: string
  /** Begins with kind and apiVersion; has the zero values that Go writes. */
  readonly object: JsonObject
}

interface Envelope {
  apiVersion: string
  kind: string
  raw: Uint8Array
  contentEncoding: string
}

/** `k8s` and a zero byte: the prefix of every body. */
const magic = [0x6b, 0x38, 0x73, 0x00]

/**
 * Decodes `k8s\0` + runtime.Unknown + the message of a built-in kind to the JSON object that the client would have sent
 * as JSON. Throws 400 for malformed bytes, 413 for more values than a JSON body may have, and 415 for kinds without a
 * protobuf form, for example custom resources.
 */
export function decodeProtobuf(body: Uint8Array): DecodedProtobuf {
  return decodeWithin(body, defaultMaxJsonValues)
}

/**
 * True if a body has more than this number of values. Decodes at most this number; false for a body that cannot be
 * decoded.
 */
export function hasMoreValues(body: Uint8Array, values: number): boolean {
  try {
    decodeWithin(body, values)
    return false
  } catch (error) {
    return isStatusError(error, 'RequestEntityTooLarge')
  }
}

function decodeWithin(body: Uint8Array, maxValues: number): DecodedProtobuf {
  if (magic.some((byte, index) => body[index] !== byte)) throw malformed('it does not start with the prefix "k8s\\x00"')
  const { apiVersion, kind, raw, contentEncoding } = decodeEnvelope(new WireReader(body, { start: magic.length }))
  if (kind === '' || apiVersion === '') throw malformed('kind and apiVersion must be set')
  if (contentEncoding !== '') throw malformed(`content encoding "${contentEncoding}" is not supported`)
  const type = messageOfKind(apiVersion, kind)
  if (type === undefined)
    throw unsupportedMediaType(
      `protobuf is not supported for kind "${kind}" of "${apiVersion}" - accepted media types include: application/json, application/yaml`,
    )
  const message = decodeMessage(new WireReader(raw, { budget: new ValueBudget(maxValues) }), type)
  return { apiVersion, kind, object: messageJson(message, new ValueBudget(maxValues), { kind, apiVersion }) }
}

/** runtime.Unknown: 1 typeMeta {1 apiVersion, 2 kind}, 2 raw, 3 contentEncoding, 4 contentType. */
function decodeEnvelope(reader: WireReader): Envelope {
  const envelope: Envelope = { apiVersion: '', kind: '', raw: new Uint8Array(), contentEncoding: '' }
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (wire !== 2 || field > 3) reader.skip(wire)
    else if (field === 1) decodeTypeMeta(reader.nested(), envelope)
    else if (field === 2) envelope.raw = reader.bytes()
    else envelope.contentEncoding = reader.string()
  }
  return envelope
}

function decodeTypeMeta(reader: WireReader, envelope: Envelope): void {
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (wire === 2 && field === 1) envelope.apiVersion = reader.string()
    else if (wire === 2 && field === 2) envelope.kind = reader.string()
    else reader.skip(wire)
  }
}
