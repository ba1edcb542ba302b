// Which requests are so expensive that they must not run on the main thread. Estimated from bytes, in a hundredth of the time.
import { defaultMaxJsonDepth, defaultMaxJsonValues, surveyJson } from '../../apimachinery/json/index.ts'
import type { Call } from '../endpoints/call.ts'
import type { Exchange } from '../server/exchange.ts'

/** Bytes below which nothing is expensive. */
const alwaysLight = 3 * 1024
/** Maximum cost on the main thread, in JSON values: each takes some 2.5 µs to decode, validate and encode, as does 1 KiB. */
const heaviest = 1500
/** Bytes of YAML, and of protobuf, that cost as much as one JSON value. */
const yamlBytesPerValue = 2
const protobufBytesPerValue = 16
/** How many times as long it takes to write YAML as JSON. */
const yamlWriting = 8
/** Maximum number of values of a document that is reformatted; above that of the largest object. */
const mostWritten = { yaml: 100_000, json: 1_000_000 }

const verbs = new Set(['get', 'create', 'update', 'patch', 'delete'])
/** Subresources that work on the whole object; others are small, or are answered by members. */
const subresources = new Set(['', 'status', 'scale', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

/** True if the body, or the object that must be decoded, is large. Reads a large body. */
export async function isHeavy({ exchange, objects, definition, request, representation }: Call): Promise<boolean> {
  const { verb } = exchange.info
  if (!verbs.has(verb) || !subresources.has(request.subresource)) return false
  if (verb !== 'get' && (await hasHeavyBody(exchange))) return true
  const isCopied = verb === 'get' && representation.as === 'Object' && request.subresource !== 'scale'
  if (isCopied || verb === 'create') return false
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  return entry !== undefined && weightOf(entry.bytes) > heaviest
}

/** The effort to reformat this JSON of any depth and size: `little` on the main thread, `much` on the worker, `too much`. */
export function effortToReformat(body: Uint8Array, format: 'json' | 'yaml'): 'little' | 'much' | 'too much' {
  if (body.length <= alwaysLight) return 'little'
  const { values } = surveyJson(body, Infinity)
  if (values > mostWritten[format]) return 'too much'
  return (values + body.length / 1024) * (format === 'yaml' ? yamlWriting : 1) > heaviest ? 'much' : 'little'
}

/** Reads the body, unless its announced length is small. */
async function hasHeavyBody(exchange: Exchange): Promise<boolean> {
  if (exchange.announcedBytes <= alwaysLight) return false
  const body = await exchange.request.body()
  const type = exchange.header('content-type') ?? ''
  if (body.length <= alwaysLight) return false
  if (type.includes('yaml')) return body.length / yamlBytesPerValue > heaviest
  if (type.includes('protobuf')) return body.length / protobufBytesPerValue > heaviest
  return weightOf(body) > heaviest
}

/** Cost of JSON, in values; 0 for JSON that will be refused for its depth or number of values, which is cheap to find out. */
function weightOf(bytes: Uint8Array): number {
  if (bytes.length <= alwaysLight) return 0
  const { depth, values } = surveyJson(bytes)
  return depth > defaultMaxJsonDepth || values > defaultMaxJsonValues ? 0 : values + bytes.length / 1024
}
