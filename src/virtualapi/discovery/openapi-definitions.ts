// OpenAPI definitions of built-in kinds, generated from the schema table. They are upstream's without descriptions,
// except for descriptions of metadata.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { builtInSchemaTable, type SchemaTableNode } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import { readGenerated } from '#virtualapi/kinds/resources/generated-facts.ts'
import { withMetadataDescriptions } from './object-meta-descriptions.ts'
import { reference } from './openapi-operations.ts'

const prefix = 'io.k8s.'
const objectMeta = 'apimachinery.pkg.apis.meta.v1.ObjectMeta'

const extensionNames: Readonly<Record<string, string>> = {
  listType: 'x-kubernetes-list-type',
  listMapKeys: 'x-kubernetes-list-map-keys',
  mapType: 'x-kubernetes-map-type',
  patchMergeKey: 'x-kubernetes-patch-merge-key',
}

/** The name of a kind's definition in documents; undefined if it has none. */
export function builtInDefinitionName(gvk: { group: string; version: string; kind: string }): string | undefined {
  const { kinds } = builtInSchemaTable()
  const name = kinds[`${gvk.group}/${gvk.version}/${gvk.kind}`] ?? kinds[`*/${gvk.kind}`]
  return name === undefined ? undefined : prefix + name
}

/** The named definitions and all definitions that they refer to, by name. Unknown names are ignored. */
export function builtInDefinitions(names: Iterable<string>): Record<string, JsonObject> {
  const { definitions } = builtInSchemaTable()
  const kinds = kindsByDefinition()
  const found = new Map<string, JsonObject>()
  const visit = (name: string): void => {
    const node = definitions[name]
    if (node === undefined || found.has(name)) return
    found.set(name, {})
    const plain = withEnums(openApiOf(node, visit), enumsOf(name))
    const definition = name === objectMeta ? withMetadataDescriptions(plain) : plain
    const gvks = kinds.get(name)
    found.set(name, gvks === undefined ? definition : { ...definition, 'x-kubernetes-group-version-kind': gvks })
  }
  for (const name of names) if (name.startsWith(prefix)) visit(name.slice(prefix.length))
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, definition]) => [prefix + name, definition]))
}

type Enums = Readonly<Record<string, readonly string[]>>
let enums: Readonly<Record<string, Enums>> | undefined

/** Allowed values by field of a definition, for documents only; validation has tables of its own. */
function enumsOf(name: string): Enums {
  enums ??= readGenerated('enums') as Record<string, Enums>
  return enums[name] ?? {}
}

/**
 * Adds the allowed values to the definition; the key `field[]` means the items of a list, `field{}` the values of a
 * map.
 */
export function withEnums(definition: JsonObject, byField: Enums): JsonObject {
  const properties = definition['properties']
  if (!isJsonObject(properties)) return definition
  for (const [path, values] of Object.entries(byField)) {
    const property = properties[path.replace(/\[\]$|\{\}$/, '')]
    if (!isJsonObject(property)) continue
    const inside = path.endsWith('[]') ? 'items' : path.endsWith('{}') ? 'additionalProperties' : undefined
    const target = inside === undefined ? property : property[inside]
    if (isJsonObject(target)) target['enum'] = [...values]
  }
  return definition
}

/** Group, version and kind by definition; without definitions that all groups share (`*`). */
function kindsByDefinition(): Map<string, JsonObject[]> {
  const result = new Map<string, JsonObject[]>()
  for (const [key, name] of Object.entries(builtInSchemaTable().kinds)) {
    const [group = '', version = '', kind = ''] = key.split('/')
    if (group === '*') continue
    result.set(name, [...(result.get(name) ?? []), { group, version, kind }])
  }
  return result
}

function openApiOf(node: SchemaTableNode, visit: (name: string) => void): JsonObject {
  const { $ref, properties, items, additionalProperties, intOrString, preserveUnknownFields, patchStrategy, ...rest } =
    node
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(rest)) result[extensionNames[key] ?? key] = value as JsonValue
  // The format `quantity` is used in the table only.
  if (result['format'] === 'quantity') delete result['format']
  if (intOrString) Object.assign(result, { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] })
  if (preserveUnknownFields && node.type === undefined) result['x-kubernetes-preserve-unknown-fields'] = true
  if (patchStrategy !== undefined) result['x-kubernetes-patch-strategy'] = patchStrategy.join(',')
  if (properties !== undefined)
    result['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, child]) => [name, openApiOf(child, visit)]),
    )
  if (items !== undefined) result['items'] = openApiOf(items, visit)
  if (additionalProperties !== undefined)
    result['additionalProperties'] =
      typeof additionalProperties === 'boolean' ? additionalProperties : openApiOf(additionalProperties, visit)
  if ($ref === undefined) return result
  visit($ref)
  const target: JsonObject = reference(prefix + $ref)
  return Object.keys(result).length === 0 ? target : { ...result, allOf: [target] }
}
