// The errors of patches that cannot be applied.
import { isExactInteger, isJsonNumber, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, statusError, type StatusError } from '#apimachinery/status/index.ts'

/**
 * 422 for a well-formed patch that does not fit the object. A real server sends this message alone and only logs the
 * reason; here the reason is added as a cause.
 */
export function unprocessablePatch(why: string, cause = new Error(why)): StatusError {
  return statusError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
    details: { causes: [{ message: why }] },
    cause,
  })
}

/** The cause where a `test` operation of a JSON patch failed. */
export class FailedTest extends Error {}

/** 400 for a document that is not a patch of its type. */
export function undecodablePatch(patch: JsonValue, goType: string): StatusError {
  return badRequest(`error decoding patch: ${unmarshalText(patch, goType)}`)
}

/** Go's message for a value that does not fit a type. */
export function unmarshalText(value: JsonValue, goType: string): string {
  return `json: cannot unmarshal ${goKind(value)} into Go value of type ${goType}`
}

/** The name that Go's JSON decoder has for the type of a value. */
export function goKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'array'
  if (value === null) return 'null'
  return typeof value === 'boolean' ? 'bool' : isJsonNumber(value) ? 'number' : typeof value
}

/** The name that Go's reflection has for the type of a decoded value. */
export function goType(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}'
  if (value === null) return '<nil>'
  if (typeof value === 'object') return 'map[string]interface {}'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'string' ? 'string' : isExactInteger(value) ? 'int64' : 'float64'
}
