// Reports the error of one field as a StatusCause with Kubernetes' reasons and texts. Paths look like
// `spec.containers[0].name` and `metadata.labels[a/b]`.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { goQuote, goValue } from '#apimachinery/text/go-text.ts'

/** The path of a named field below `path`. */
export function childPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
/** The path of an item of a list. */
export function indexPath(path: string, index: number): string {
  return `${path}[${String(index)}]`
}
/** The path of a value in a map. */
export function keyPath(path: string, key: string): string {
  return `${path}[${key}]`
}

function cause(reason: string, field: string, head: string, detail: string): StatusCause {
  return { reason, message: detail === '' ? head : `${head}: ${detail}`, field: field === '' ? '<nil>' : field }
}

/** The value is malformed. */
export function fieldInvalid(field: string, value: JsonValue, detail: string): StatusCause {
  return cause('FieldValueInvalid', field, `Invalid value: ${goValue(value)}`, detail)
}
/** The value is of the wrong type; same text as fieldInvalid, its own reason. */
export function fieldTypeInvalid(field: string, value: JsonValue, detail: string): StatusCause {
  return cause('FieldValueTypeInvalid', field, `Invalid value: ${goValue(value)}`, detail)
}
/** The value is missing or empty. */
export function fieldRequired(field: string, detail = ''): StatusCause {
  return cause('FieldValueRequired', field, 'Required value', detail)
}
/** The value occurs twice in a list that must be unique. */
export function fieldDuplicate(field: string, value: JsonValue): StatusCause {
  return cause('FieldValueDuplicate', field, `Duplicate value: ${goValue(value)}`, '')
}
/** The object to which the value refers does not exist. */
export function fieldNotFound(field: string, value: JsonValue): StatusCause {
  return cause('FieldValueNotFound', field, `Not found: ${goValue(value)}`, '')
}
/** The value is not one of the supported ones, which the message lists in the given order. */
export function fieldNotSupported(field: string, value: JsonValue, supported: readonly string[]): StatusCause {
  const detail = supported.length === 0 ? '' : `supported values: ${supported.map(goQuote).join(', ')}`
  return cause('FieldValueNotSupported', field, `Unsupported value: ${goValue(value)}`, detail)
}
/** The field may not be set, or not to this value; the detail says when. */
export function fieldForbidden(field: string, detail: string): StatusCause {
  return cause('FieldValueForbidden', field, 'Forbidden', detail)
}
/** The text is too long; the message does not repeat it. A negative bound is left out of the message. */
export function fieldTooLong(field: string, maxBytes: number): StatusCause {
  const detail =
    maxBytes < 0 ? 'value is too long' : `may not be more than ${String(maxBytes)} ${maxBytes === 1 ? 'byte' : 'bytes'}`
  return cause('FieldValueTooLong', field, 'Too long', detail)
}
/** The list or map has too many entries. */
export function fieldTooMany(field: string, actual: number, max: number): StatusCause {
  const detail = `must have at most ${String(max)} ${max === 1 ? 'item' : 'items'}`
  return cause('FieldValueTooMany', field, `Too many: ${String(actual)}`, detail)
}

/** One cause as Kubernetes prints it inside longer messages: `spec.x: Invalid value: "y": why`. */
export function causeText({ field, message }: StatusCause): string {
  return `${field ?? ''}: ${message ?? ''}`
}

/** Several texts as Go's aggregate error prints them: without duplicates, in brackets when more than one is left. */
export function aggregateText(texts: readonly string[]): string {
  const unique = [...new Set(texts)]
  return unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`
}
