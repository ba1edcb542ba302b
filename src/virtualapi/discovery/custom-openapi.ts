// The OpenAPI v3 document of a group version of custom resources.
import { Buffer } from 'node:buffer'
import {
  encodeJson,
  isJsonObject,
  type GroupVersion,
  type GroupVersionKind,
  type JsonObject,
} from '#apimachinery/meta/index.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { commonDescriptions } from './common-descriptions.ts'
import { builtInDefinitionName, builtInDefinitions } from './openapi-definitions.ts'
import { commonDefinitions, reference, resourcePaths } from './openapi-operations.ts'

/** A custom resource in one version, with the schema in its CustomResourceDefinition. */
export interface CustomResourceOpenApi {
  readonly info: ResourceInfo
  readonly openAPIV3Schema?: JsonObject
  /** Paths of fields that field selectors may name: `spec.color`. */
  readonly selectableFields?: readonly string[]
  /** spec.names.listKind; default: the kind with suffix `List`. */
  readonly listKind?: string
}

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const text = (description: string): JsonObject => ({ description, type: 'string' })
const objectMeta = `${meta}.ObjectMeta`

/** The fields that every object has. */
function typeAndMetadata(): JsonObject {
  const { apiVersion, kind, metadata } = commonDescriptions()
  return {
    apiVersion: text(apiVersion),
    kind: text(kind),
    metadata: { description: metadata, allOf: [reference(objectMeta)] },
  }
}

/**
 * The document of `/openapi/v3/apis/GROUP/VERSION`. `resources`: all custom resources of this group version that the
 * logical cluster serves.
 */
export function openApiV3ForCustomResources(gv: GroupVersion, resources: readonly CustomResourceOpenApi[]): JsonObject {
  const used = usedByAll()
  const parts = resources
    .toSorted((a, b) => (a.info.resource < b.info.resource ? -1 : 1))
    .map((resource) => partOf(gv, resource, used))
  return {
    ...documentHead,
    paths: Object.assign({}, ...parts.map(({ paths }) => paths)) as JsonObject,
    components: {
      schemas: Object.assign({}, ...parts.map(({ schemas }) => schemas), sharedDefinitions(used)) as JsonObject,
    },
  }
}

/**
 * The bytes of the same document, encoded one resource after the other, because a group version may have megabytes of
 * schemas. `resources` in the order of their names; `turn` lets other work run between two of them.
 */
export async function encodeOpenApiInTurns(
  gv: GroupVersion,
  resources: Iterable<CustomResourceOpenApi>,
  turn: () => Promise<void>,
): Promise<Buffer> {
  const used = usedByAll()
  const [paths, schemas]: [Buffer[], Buffer[]] = [[], []]
  for (const resource of resources) {
    const part = partOf(gv, resource, used)
    addMembers(paths, part.paths)
    addMembers(schemas, part.schemas)
    await turn()
  }
  addMembers(schemas, sharedDefinitions(used))
  const head = encodeJson(documentHead).slice(0, -1)
  return Buffer.concat([
    Buffer.from(`${head},"paths":{`),
    ...paths,
    Buffer.from('},"components":{"schemas":{'),
    ...schemas,
    Buffer.from('}}}'),
  ])
}

const documentHead = { openapi: '3.0.0', info: { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' } }

/** Adds the members of `object` to an object that is being written. */
function addMembers(written: Buffer[], object: JsonObject): void {
  const members = encodeJson(object).slice(1, -1)
  if (members !== '') written.push(Buffer.from(written.length === 0 ? members : `,${members}`))
}

function usedByAll(): Set<string> {
  return new Set([...commonDefinitions, objectMeta, `${meta}.ListMeta`])
}

function sharedDefinitions(used: ReadonlySet<string>): JsonObject {
  return { ...builtInDefinitions(used), ...describedDefinitions(used) }
}

/**
 * The paths and definitions of one resource. Adds the names of the shared definitions that they use to the set `used`.
 */
function partOf(
  gv: GroupVersion,
  resource: CustomResourceOpenApi,
  used: Set<string>,
): { readonly paths: JsonObject; readonly schemas: JsonObject } {
  const { info, listKind = `${info.kind}List` } = resource
  const definitionOf = (gvk: GroupVersionKind): string | undefined => {
    if (gvk.group === gv.group && gvk.version === gv.version)
      return customDefinitionName(gvk.kind === `${info.kind}List` ? { ...gvk, kind: listKind } : gvk)
    const name = builtInDefinitionName(gvk)
    if (name !== undefined) used.add(name)
    return name
  }
  const schemas: JsonObject = {
    [customDefinitionName({ ...gv, kind: info.kind })]: objectSchema(resource),
    [customDefinitionName({ ...gv, kind: listKind })]: listSchema(info, listKind, resource.selectableFields),
  }
  return { paths: resourcePaths(info, { definitionOf }), schemas }
}

/** The named definitions that Kubernetes' documents describe, with all definitions that they refer to. */
function describedDefinitions(names: ReadonlySet<string>): Record<string, JsonObject> {
  const { definitions } = commonDescriptions()
  const found: Record<string, JsonObject> = {}
  const visit = (name: string): void => {
    const definition = definitions[name]
    if (definition === undefined || found[name] !== undefined) return
    found[name] = definition
    for (const [, inner = ''] of JSON.stringify(definition).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) visit(inner)
  }
  names.forEach(visit)
  return found
}

/** The name of a definition, with the labels of the group reversed: `dev.example.v1.Widget`. */
export function customDefinitionName({ group, version, kind }: GroupVersionKind): string {
  return [...group.split('.').reverse(), version, kind].join('.')
}

function objectSchema({ info, openAPIV3Schema, selectableFields }: CustomResourceOpenApi): JsonObject {
  const schema: JsonObject = openAPIV3Schema === undefined ? { type: 'object' } : published(openAPIV3Schema)
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : undefined
  return {
    ...schema,
    properties: {
      ...properties,
      ...typeAndMetadata(),
    },
    'x-kubernetes-group-version-kind': [gvkOf(info, info.kind)],
    ...selectable(selectableFields),
  }
}

function selectable(fields: readonly string[] = []): JsonObject {
  return fields.length === 0
    ? {}
    : { 'x-kubernetes-selectable-fields': fields.map((fieldPath): JsonObject => ({ fieldPath })) }
}

function listSchema(info: ResourceInfo, listKind: string, fields: readonly string[] | undefined): JsonObject {
  const texts = commonDescriptions()
  return {
    description: `${listKind} is a list of ${info.kind}`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: text(texts.apiVersion),
      items: {
        description: texts.items.replace('PLURAL', info.resource),
        type: 'array',
        items: reference(customDefinitionName(info)),
      },
      kind: text(texts.kind),
      metadata: { description: texts.listMetadata, allOf: [reference(`${meta}.ListMeta`)] },
    },
    'x-kubernetes-group-version-kind': [gvkOf(info, listKind)],
    ...selectable(fields),
  }
}

function gvkOf({ group, version }: GroupVersion, kind: string): JsonObject {
  return { group, version, kind }
}

/** The schema for documents: adds the types of int-or-string, and the common fields of embedded objects. */
function published(schema: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties' && isJsonObject(value))
      result[key] = Object.fromEntries(
        Object.entries(value).map(([name, child]) => [name, isJsonObject(child) ? published(child) : child]),
      )
    else if ((key === 'items' || key === 'additionalProperties') && isJsonObject(value)) result[key] = published(value)
    else result[key] = value
  }
  if (result['x-kubernetes-int-or-string'] === true && result['anyOf'] === undefined && result['allOf'] === undefined)
    result['anyOf'] = [{ type: 'integer' }, { type: 'string' }]
  if (result['x-kubernetes-embedded-resource'] === true) embed(result)
  return result
}

/** Sets apiVersion, kind and metadata of an embedded object, replacing those in its schema. */
function embed(schema: JsonObject): void {
  const { properties, required } = schema
  schema['properties'] = {
    ...(isJsonObject(properties) ? properties : {}),
    ...typeAndMetadata(),
  }
  schema['required'] = [...(Array.isArray(required) ? required : []), 'kind', 'apiVersion']
}
