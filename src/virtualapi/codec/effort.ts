// Estimates the cost of decoding, validating and encoding a document from its bytes, in a hundredth of the time that
// this work takes.
import { defaultMaxJsonDepth, defaultMaxJsonValues, surveyJson } from '#apimachinery/json/index.ts'
import { hasMoreValues } from './protobuf/index.ts'

/** The size in bytes up to which no document is expensive. */
export const alwaysLight = 3 * 1024
/**
 * Maximum cost on the main thread, in JSON values: each value takes some 2.5 µs to decode, validate and encode, and so
 * does each KiB.
 */
const maxLightValues = 1500
/** Bytes of YAML that cost as much as one JSON value. */
const yamlBytesPerValue = 2
/** The bytes of protobuf above which a body is large, however few values it has. */
const maxLightProtobuf = 24 * 1024
/** The time to write YAML as a multiple of the time to write JSON. */
const yamlWriting = 8
/** The cost of adding, validating and encoding a value, as a multiple of the cost of decoding it. */
const growth = 3
/** Maximum number of values of a document that is reformatted. It is above the number of the largest object. */
const mostWritten = { yaml: 100_000, json: 1_000_000, protobuf: 1_000_000 }

/**
 * The effort to reformat this JSON of any depth and size: `little` can be done on the main thread, `much` on the
 * offload thread, and `too much` must be refused.
 */
export function effortToReformat(
  body: Uint8Array,
  format: 'json' | 'yaml' | 'protobuf',
): 'little' | 'much' | 'too much' {
  if (body.length <= alwaysLight) return 'little'
  const { values } = surveyJson(body, Infinity)
  if (values > mostWritten[format]) return 'too much'
  return (values + body.length / 1024) * (format === 'yaml' ? yamlWriting : 1) > maxLightValues ? 'much' : 'little'
}

/**
 * True if this body is too expensive to decode and validate on the main thread. `contentType`: as the client sent it.
 */
export function isLargeBody(body: Uint8Array, contentType: string): boolean {
  if (body.length <= alwaysLight) return false
  if (contentType.includes('yaml')) return body.length / yamlBytesPerValue > maxLightValues
  if (contentType.includes('protobuf')) return body.length > maxLightProtobuf || hasMoreValues(body, maxLightValues)
  const { depth, values } = surveyJson(body)
  // A body with too many levels or values is refused, which takes little time.
  if (depth > defaultMaxJsonDepth || values > defaultMaxJsonValues) return false
  return weightOf(body, values) > maxLightValues
}

/**
 * True if this object in memory is too expensive to decode on the main thread. Defaults and managedFields can give it
 * more values than a body may have.
 */
export function isLargeObject(bytes: Uint8Array): boolean {
  if (bytes.length <= alwaysLight) return false
  return weightOf(bytes, surveyJson(bytes).values) > maxLightValues
}

/**
 * True if an object of this size, which was light before admission, has become too expensive for the main thread. The
 * limit is twice the usual one, because a request that moves to another thread begins again and calls its webhooks
 * again.
 */
export function isLargeSize({ values, bytes }: { readonly values: number; readonly bytes: number }): boolean {
  return values + bytes / 1024 > 2 * maxLightValues
}

/** True if adding this number of values to an object is too expensive on the main thread. */
export function isLargeGrowth(values: number): boolean {
  return values * growth > maxLightValues
}

/** Cost of JSON, in values. */
function weightOf(bytes: Uint8Array, values: number): number {
  return values + bytes.length / 1024
}
