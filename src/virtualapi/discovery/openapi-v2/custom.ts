// Paths and definitions of custom resources for the OpenAPI v2 document. As in upstream's apiextensions, schemas lose
// the keywords that v2 cannot express, because old clients would otherwise refuse valid objects.
import { isJsonObject, type GroupVersion, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import {
  customDefinitionName,
  openApiV3ForCustomResources,
  type CustomResourceOpenApi,
} from '#virtualapi/discovery/custom-openapi.ts'
import { openApiKey } from '#virtualapi/discovery/openapi-index.ts'
import { swaggerFromV3 } from './from-v3.ts'
import type { SwaggerParts } from './swagger.ts'

const preserves = 'x-kubernetes-preserve-unknown-fields'
const metadataReference = { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }

const unsupported = new Set(['allOf', 'oneOf', 'anyOf', 'not', 'nullable', 'example', 'externalDocs', 'default'])

/**
 * Paths and definitions of custom resources, one group version at a time; `known`: names of definitions that the
 * document has already. Yields undefined where the caller may pause, because a definition may have 512 versions, and a
 * version thousands of fields.
 */
export function* swaggerForCustomResources(
  resources: readonly CustomResourceOpenApi[],
  known: ReadonlySet<string>,
): Generator<SwaggerParts | undefined> {
  for (const members of Map.groupBy(resources, ({ info }) => openApiKey(info)).values()) {
    const [first] = members
    if (first === undefined) continue
    const gv: GroupVersion = { group: first.info.group, version: first.info.version }
    const narrowed = members.map(({ openAPIV3Schema, ...resource }) =>
      openAPIV3Schema === undefined ? resource : { ...resource, openAPIV3Schema: schemaForV2(openAPIV3Schema) },
    )
    yield undefined
    const document = openApiV3ForCustomResources(gv, narrowed)
    yield undefined
    const { paths, definitions } = swaggerFromV3(document, ['application/json', 'application/yaml'])
    for (const { info, openAPIV3Schema } of members) {
      const name = customDefinitionName(info)
      const gvks = definitions[name]?.['x-kubernetes-group-version-kind']
      // Without properties, clients do not refuse unknown fields.
      if (gvks !== undefined && (openAPIV3Schema === undefined || openAPIV3Schema[preserves] === true))
        definitions[name] = { type: 'object', 'x-kubernetes-group-version-kind': gvks }
    }
    const missing = Object.entries(definitions).filter(([name]) => !known.has(name))
    yield { paths, definitions: Object.fromEntries(missing) }
  }
}

/**
 * A structural schema without the keywords that v2 cannot express and those that would make clients refuse valid
 * objects.
 */
export function schemaForV2(schema: JsonObject): JsonObject {
  const result: JsonObject = Object.fromEntries(Object.entries(schema).filter(([word]) => !unsupported.has(word)))
  const unknownKept = schema[preserves] === true
  if (schema['nullable'] === true) delete result['type']
  if (schema['nullable'] === true || unknownKept) {
    delete result['items']
    delete result['properties']
  }
  if (unknownKept && result['type'] === 'object') delete result['type']
  if (result['items'] === undefined && result['type'] === 'array') delete result['type']
  if (isJsonObject(result['items'])) result['items'] = schemaForV2(result['items'])
  if (isJsonObject(result['additionalProperties'])) {
    if (result['additionalProperties']['nullable'] === true) delete result['required']
    result['additionalProperties'] = schemaForV2(result['additionalProperties'])
  }
  const properties = result['properties']
  if (isJsonObject(properties)) {
    requireOnlyNonNull(result, properties)
    result['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, item]) => [name, isJsonObject(item) ? schemaForV2(item) : item]),
    )
  }
  if (schema['x-kubernetes-embedded-resource'] === true && !unknownKept) embed(result)
  return result
}

/** Drops nullable properties from `required`: clients would take a null for a missing property. */
function requireOnlyNonNull(schema: JsonObject, properties: JsonObject): void {
  const required = schema['required']
  if (!Array.isArray(required)) return
  const isNullable = (item: JsonValue | undefined): boolean => isJsonObject(item) && item['nullable'] === true
  const stillRequired = required.filter((name) => typeof name === 'string' && !isNullable(properties[name]))
  if (stillRequired.length > 0) schema['required'] = stillRequired
  else delete schema['required']
}

/** Sets apiVersion, kind and metadata of an embedded object. */
function embed(schema: JsonObject): void {
  const text: JsonObject = { type: 'string' }
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {}
  schema['properties'] = { ...properties, apiVersion: text, kind: text, metadata: { allOf: [metadataReference] } }
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  schema['required'] = [...new Set([...required, 'kind', 'apiVersion'])]
}
