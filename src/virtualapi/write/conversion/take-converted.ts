// The changes that a conversion webhook may make to an object: anything outside metadata, and labels and annotations.
import {
  isJsonObject,
  parseApiVersion,
  type JsonObject,
  type JsonValue,
  isExactInteger,
} from '#apimachinery/meta/index.ts'
import { statusError, type StatusError } from '#apimachinery/status/index.ts'
import { sizeWithin } from '#virtualapi/kinds/resources/object-size.ts'
import { annotationCauses, labelCauses } from '#virtualapi/kinds/resources/object-meta.ts'

/**
 * The most values of a converted object that has more than twice the values of the original. Small objects are
 * converted on the main thread, where other requests would wait for a much larger result.
 */
const maxGrown = 25_000

/** The error of a conversion that failed: as in kube-apiserver, its Status has no reason. */
export function conversionFailure(message: string, cause?: unknown): StatusError {
  return statusError(500, '', message, { cause })
}

/** `group/version, Kind=kind` of an object, as Go prints it. */
export function typeText(object: JsonObject): string {
  return `${versionText(object)}, Kind=${textOf(object, 'kind')}`
}

/**
 * The object that the webhook made of `original`, with the metadata of the original except for labels and annotations.
 * Throws a StatusError if the result is another object, or is not in version `apiVersion`.
 */
export function takeConverted(original: JsonObject, converted: JsonValue, apiVersion: string): JsonObject {
  const webhook = `conversion webhook for ${typeText(original)}`
  if (!isJsonObject(converted) || textOf(converted, 'kind') === '')
    throw conversionFailure("Object 'Kind' is missing in the answer")
  const at = `${webhook} returned invalid object at index 0`
  const version = textOf(converted, 'apiVersion')
  if (version !== apiVersion)
    throw conversionFailure(`${at}: invalid groupVersion (expected ${apiVersion}, received ${versionText(converted)})`)
  const [kind, given] = [textOf(original, 'kind'), textOf(converted, 'kind')]
  if (kind !== given) throw conversionFailure(`${at}: invalid kind (expected ${kind}, received ${given})`)
  const another = differenceOf(original, converted)
  if (another !== undefined) throw conversionFailure(`${webhook} returned invalid object: ${another}`)
  const size = sizeWithin(converted, original, { maxGrown })
  if (typeof size === 'string') throw conversionFailure(`${webhook} returned invalid object: it is too large: ${size}`)
  const metadata = restoredMeta(original, converted)
  if (typeof metadata === 'string') throw conversionFailure(`${webhook} returned invalid metadata: ${metadata}`)
  return { ...converted, metadata }
}

function versionText(object: JsonObject): string {
  const { group, version } = parseApiVersion(textOf(object, 'apiVersion'))
  return group === '' ? version : `${group}/${version}`
}

function differenceOf(original: JsonObject, converted: JsonObject): string | undefined {
  const [before, after] = [metaOf(original), metaOf(converted)]
  for (const [field, name] of [
    ['name', 'name'],
    ['namespace', 'namespace'],
    ['uid', 'UID'],
  ] as const) {
    const [expected, got] = [textOf(before, field), textOf(after, field)]
    if (expected !== got) return `must have the same ${name}: ${expected} != ${got}`
  }
  return undefined
}

/** The metadata of the result, or a text that says why the webhook's metadata is invalid. */
function restoredMeta(original: JsonObject, converted: JsonObject): JsonObject | string {
  const given = converted['metadata']
  if (given === undefined) return 'missing metadata in converted object'
  if (!isJsonObject(given)) return `invalid metadata of type ${goType(given)} in converted object`
  const metadata: JsonObject = { ...metaOf(original) }
  for (const field of ['labels', 'annotations'] as const) {
    const map = given[field] ?? undefined
    if (map === undefined) {
      Reflect.deleteProperty(metadata, field)
      continue
    }
    if (!isJsonObject(map)) return `invalid metadata.${field} of type ${goType(map)} in converted object`
    const wrong = mapError(field, map, metadata[field])
    if (wrong !== undefined) return wrong
    metadata[field] = map
  }
  return metadata
}

function mapError(field: 'labels' | 'annotations', map: JsonObject, before: JsonValue | undefined): string | undefined {
  for (const [key, value] of Object.entries(map))
    if (typeof value !== 'string')
      return `metadata.${field}[${key}] must be a string, but is ${goType(value)} in converted object`
  const was = isJsonObject(before) ? before : {}
  const keys = Object.keys(map)
  // Unchanged labels or annotations are not checked again.
  if (keys.length === Object.keys(was).length && keys.every((key) => was[key] === map[key])) return undefined
  const texts = map as Record<string, string>
  // Upstream calls the field of annotations by another name here.
  const causes = field === 'labels' ? labelCauses(texts) : annotationCauses(texts, 'metadata.annotation')
  const errors = [...new Set(causes.map((cause) => `${cause.field ?? ''}: ${cause.message ?? ''}`))]
  return errors.length === 0 ? undefined : errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`
}

function metaOf(object: JsonObject): JsonObject {
  const { metadata } = object
  return isJsonObject(metadata) ? metadata : {}
}

function textOf(object: JsonObject, field: string): string {
  const value = object[field]
  return typeof value === 'string' ? value : ''
}

function goType(value: JsonValue): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'object') return 'map[string]interface {}'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  return isExactInteger(value) ? 'int64' : 'float64'
}
