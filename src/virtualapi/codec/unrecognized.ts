// The error for a body whose kind cannot be read, with kube-apiserver's message.
import { Buffer } from 'node:buffer'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, type StatusError } from '#apimachinery/status/index.ts'

const maxShownBytes = 30
const goStruct = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`

/**
 * The 400 error for a body that is not a JSON object with a readable kind. `kind`: the kind that the endpoint takes.
 */
export function unrecognized(kind: string, why: string, body: Uint8Array): StatusError {
  const text = `couldn't get version/kind; json parse error: ${why} (${summaryOf(body)})`
  return badRequest(`the object provided is unrecognized (must be of type ${kind}): ${text}`)
}

/**
 * The reason why kind and apiVersion of a JSON document cannot be read; undefined if they can be read. Null counts as
 * an empty object.
 */
export function kindError(value: JsonValue): string | undefined {
  if (value === null) return undefined
  if (!isJsonObject(value)) return mismatch(value, `value of type ${goStruct}`)
  for (const name of ['apiVersion', 'kind'] as const) {
    const field = value[name]
    if (field !== undefined && field !== null && typeof field !== 'string')
      return mismatch(field, `struct field .${name} of type string`)
  }
  return undefined
}

function mismatch(value: JsonValue, where: string): string {
  const what = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  return `json: cannot unmarshal ${what} into Go ${where}`
}

/** The beginning of the body: as text if the body looks like JSON, otherwise in hexadecimal. */
function summaryOf(body: Uint8Array): string {
  if (body.length === 0) return '<empty>'
  const start = Buffer.from(body.subarray(0, maxShownBytes))
  const text = start.toString(body[0] === 0x7b ? 'utf8' : 'hex')
  return body.length > maxShownBytes ? `${text} ...` : text
}
