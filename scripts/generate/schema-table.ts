// Writes the schema table: the OpenAPI documents of the served group versions without descriptions, in the form of
// SchemaNode.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { servedGroupVersions } from './resource-table.ts'

/** References are `{"$ref": name}`; names lack the common prefix `io.k8s.`. */
export interface SchemaTable {
  /** "group/version/Kind" -> name */
  kinds: Record<string, string>
  definitions: Record<string, JsonObject>
}

interface Gvk {
  group: string
  version: string
  kind: string
}

/** Types whose values are arbitrary JSON. */
const anyValue = new Set([
  'apimachinery.pkg.runtime.RawExtension',
  'apimachinery.pkg.apis.meta.v1.FieldsV1',
  'apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON',
  'apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray',
  'apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool',
  'apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray',
])

const copied: Record<string, string> = {
  type: 'type',
  format: 'format',
  required: 'required',
  enum: 'enum',
  pattern: 'pattern',
  'x-kubernetes-list-type': 'listType',
  'x-kubernetes-list-map-keys': 'listMapKeys',
  'x-kubernetes-map-type': 'mapType',
  'x-kubernetes-patch-merge-key': 'patchMergeKey',
  'x-kubernetes-preserve-unknown-fields': 'preserveUnknownFields',
  'x-kubernetes-embedded-resource': 'embeddedResource',
}

/** Keys that do not affect a server. */
const ignored = new Set(['description', 'x-kubernetes-group-version-kind', 'x-kubernetes-unions'])

export function readSchemas(module: string): SchemaTable {
  const kinds: Record<string, string> = {}
  const definitions: Record<string, JsonObject> = {}
  for (const { group, version } of servedGroupVersions(module)) {
    const file = group === '' ? `api__${version}_openapi.json` : `apis__${group}__${version}_openapi.json`
    const document = JSON.parse(readFileSync(join(module, 'api/openapi-spec/v3', file), 'utf8')) as {
      components: { schemas: Record<string, JsonObject> }
    }
    for (const [longName, schema] of Object.entries(document.components.schemas)) {
      const name = shortName(longName)
      definitions[name] = definitionOf(name, schema)
      const gvks = (schema['x-kubernetes-group-version-kind'] ?? []) as unknown as Gvk[]
      // DeleteOptions, Status and the like belong to every group: they are found by kind alone.
      for (const gvk of gvks)
        kinds[gvks.length > 1 ? `*/${gvk.kind}` : `${gvk.group}/${gvk.version}/${gvk.kind}`] = name
    }
  }
  return { kinds: sorted(kinds), definitions: sorted(definitions) }
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function shortName(name: string): string {
  if (!name.startsWith('io.k8s.')) throw new Error(`definition "${name}" is not of Kubernetes`)
  return name.slice('io.k8s.'.length)
}

function definitionOf(name: string, schema: JsonObject): JsonObject {
  if (anyValue.has(name))
    return {
      ...(name.endsWith('FieldsV1') || name.endsWith('RawExtension') ? { type: 'object' } : {}),
      preserveUnknownFields: true,
    }
  if (name === 'apimachinery.pkg.util.intstr.IntOrString') return { intOrString: true }
  if (name === 'apimachinery.pkg.api.resource.Quantity')
    return { format: 'quantity', oneOf: [{ type: 'string' }, { type: 'number' }] }
  return nodeOf(schema, name)
}

function nodeOf(schema: JsonObject, at: string): JsonObject {
  const node: JsonObject = {}
  for (const [key, value] of Object.entries(schema)) {
    const name = copied[key]
    if (name !== undefined) node[name] = value
    else if (key === '$ref') node['$ref'] = shortName((value as string).slice('#/components/schemas/'.length))
    else if (key === 'allOf') Object.assign(node, nodeOf(onlyOne(value, at), at))
    else if (key === 'items') node[key] = nodeOf(value as JsonObject, `${at}[]`)
    else if (key === 'additionalProperties')
      node[key] = typeof value === 'boolean' ? value : nodeOf(value as JsonObject, `${at}{}`)
    else if (key === 'properties')
      node[key] = Object.fromEntries(
        Object.entries(value as JsonObject).map(([field, child]) => [
          field,
          nodeOf(child as JsonObject, `${at}.${field}`),
        ]),
      )
    else if (key === 'default') {
      if (!isZero(value)) node[key] = value
    } else if (key === 'x-kubernetes-patch-strategy') node['patchStrategy'] = (value as string).split(',')
    else if (!ignored.has(key)) throw new Error(`${at}: "${key}" has no place in a SchemaNode`)
  }
  return node
}

/** `allOf` with one reference is how a document adds siblings to a reference. */
function onlyOne(value: JsonValue, at: string): JsonObject {
  if (!Array.isArray(value) || value.length !== 1) throw new Error(`${at}: allOf of more than one`)
  return value[0] as JsonObject
}

/** The documents list Go's zero values as defaults of required fields; no server fills them in. */
function isZero(value: JsonValue): boolean {
  return (
    value === '' ||
    value === 0 ||
    value === false ||
    (typeof value === 'object' && Object.keys(value ?? {}).length === 0)
  )
}
