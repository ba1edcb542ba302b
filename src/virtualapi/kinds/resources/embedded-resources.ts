// Whole objects within custom resources (x-kubernetes-embedded-resource): their kind, apiVersion and metadata follow
// the rules of every object.
import { dns1035LabelErrors, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { fieldSchemaOf, type SchemaNode } from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from './names.ts'
import { metaCauses } from './object-meta.ts'

/**
 * Calls `visit` for every embedded object below `value`. `path` is the field path of `value`, such as `spec.template`.
 */
export function forEmbedded(
  value: JsonValue,
  schema: SchemaNode,
  visit: (object: JsonObject, path: string) => void,
  path = '',
): void {
  if (!mayEmbed(schema)) return
  if (Array.isArray(value)) {
    const { items } = schema
    if (items !== undefined) for (const [i, item] of value.entries()) forEmbedded(item, items, visit, `${path}[${i}]`)
    return
  }
  if (!isJsonObject(value)) return
  if (schema.embeddedResource === true && path !== '') visit(value, path)
  for (const [key, member] of Object.entries(value)) {
    const field = fieldSchemaOf(schema, key)
    if (field === undefined) continue
    const isProperty = schema.properties !== undefined && Object.hasOwn(schema.properties, key)
    forEmbedded(member, field, visit, isProperty ? (path === '' ? key : `${path}.${key}`) : `${path}[${key}]`)
  }
}

// The results of mayEmbed by node, since most schemas embed nothing. A node on a cycle counts as true while it is being
// computed.
const known = new WeakMap<SchemaNode, boolean>()

function mayEmbed(schema: SchemaNode): boolean {
  const response = known.get(schema)
  if (response !== undefined) return response
  known.set(schema, true)
  const { properties = {}, items, additionalProperties, embeddedResource } = schema
  const below = [...Object.values(properties), items, additionalProperties]
  const result = embeddedResource === true || below.some((child) => typeof child === 'object' && mayEmbed(child))
  known.set(schema, result)
  return result
}

/**
 * Validation errors of the objects embedded in `value`, and of `value` itself if it has a path and is an embedded
 * object.
 */
export function embeddedCauses(value: JsonValue, schema: SchemaNode, path = ''): StatusCause[] {
  const causes: StatusCause[] = []
  forEmbedded(value, schema, (embedded, at) => causes.push(...causesOf(embedded, at)), path)
  return causes
}

function causesOf({ apiVersion, kind, metadata }: JsonObject, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const text = (field: string, value: JsonValue | undefined, check: (text: string) => string | undefined): void => {
    const at = `${path}.${field}`
    if (value === undefined) causes.push(fieldRequired(at))
    else if (typeof value !== 'string') causes.push(fieldInvalid(at, value, 'must be a string'))
    else {
      const why = value === '' ? 'must not be empty' : check(value)
      if (why !== undefined) causes.push(fieldInvalid(at, value, why))
    }
  }
  text('apiVersion', apiVersion, (value) =>
    value.split('/').length > 2 ? `unexpected GroupVersion string: ${value}` : undefined,
  )
  text('kind', kind, (value) => {
    const errors = dns1035LabelErrors(value.toLowerCase())
    return errors.length === 0 ? undefined : `may have mixed case, but should otherwise match: ${errors.join(',')}`
  })
  return isJsonObject(metadata) ? [...causes, ...metadataCauses(metadata, path)] : causes
}

function metadataCauses(metadata: JsonObject, path: string): StatusCause[] {
  const named = {
    ...metadata,
    name: metadata['name'] === undefined || metadata['name'] === '' ? 'unnamed' : metadata['name'],
  }
  const object = { apiVersion: 'v1', kind: '', metadata: named } as unknown as KubeObject
  const causes = metaCauses(object, {
    info: { namespaced: !!metadata['namespace'] },
    strategy: { validateName: pathSegmentName },
  })
  return causes.map((cause) => ({ ...cause, field: `${path}.${cause.field ?? ''}` }))
}
