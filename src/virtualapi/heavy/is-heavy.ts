// Which requests take so long to answer that everybody else would notice: told from bytes, in a hundredth of that time.
import { defaultMaxJsonDepth, defaultMaxJsonValues, surveyJson } from '../../apimachinery/json/index.ts'
import type { Call } from '../endpoints/call.ts'
import type { Exchange } from '../server/exchange.ts'

/** Nothing below this is heavy, whatever it is; bytes. */
const alwaysLight = 3 * 1024
/** In values: each takes some 2.5 microseconds of decoding, checking and encoding, and so does a KiB of text. */
const heaviest = 1500
/** Bytes of YAML, and of protobuf, that cost as much as a value of JSON. */
const yamlBytesPerValue = 2
const protobufBytesPerValue = 16
/** To write YAML takes so many times as long as JSON. */
const yamlWriting = 8
/** Of a document, what is written in another form than it is kept in. An object of the largest size is. */
const mostWritten = { yaml: 100_000, json: 1_000_000 }

const verbs = new Set(['get', 'create', 'update', 'patch', 'delete'])
/** What is about the object as a whole; other subresources are small, or speak to members. */
const subresources = new Set(['', 'status', 'scale', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

/** Whether a request brings much, or is about an object that holds much and must be looked into. Waits for a large body. */
export async function isHeavy({ exchange, objects, definition, request, representation }: Call): Promise<boolean> {
  const { verb } = exchange.info
  if (!verbs.has(verb) || !subresources.has(request.subresource)) return false
  if (verb !== 'get' && (await hasHeavyBody(exchange))) return true
  const isCopied = verb === 'get' && representation.as === 'Object' && request.subresource !== 'scale'
  if (isCopied || verb === 'create') return false
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  return entry !== undefined && weightOf(entry.bytes) > heaviest
}

/** What it takes to write this JSON, of whatever depth and number of values, in another form: `too much` is seconds. */
export function effortToReformat(body: Uint8Array, format: 'json' | 'yaml'): 'little' | 'much' | 'too much' {
  if (body.length <= alwaysLight) return 'little'
  const { values } = surveyJson(body, Infinity)
  if (values > mostWritten[format]) return 'too much'
  return (values + body.length / 1024) * (format === 'yaml' ? yamlWriting : 1) > heaviest ? 'much' : 'little'
}

/** A body of unknown length is waited for. */
async function hasHeavyBody(exchange: Exchange): Promise<boolean> {
  if (exchange.announcedBytes <= alwaysLight) return false
  const body = await exchange.request.body()
  const type = exchange.header('content-type') ?? ''
  if (body.length <= alwaysLight) return false
  if (type.includes('yaml')) return body.length / yamlBytesPerValue > heaviest
  if (type.includes('protobuf')) return body.length / protobufBytesPerValue > heaviest
  return weightOf(body) > heaviest
}

/** Of JSON, in values. What is refused for its depth or its number of values is so by counting alone: that is light. */
function weightOf(bytes: Uint8Array): number {
  if (bytes.length <= alwaysLight) return 0
  const { depth, values } = surveyJson(bytes)
  return depth > defaultMaxJsonDepth || values > defaultMaxJsonValues ? 0 : values + bytes.length / 1024
}
