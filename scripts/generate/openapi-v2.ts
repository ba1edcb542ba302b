// Writes Kubernetes' own OpenAPI v2 document, reduced to the served paths, in the two formats that clients request.
import { readFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { kubernetesVersion } from '#virtualapi/discovery/index.ts'
import {
  encodeSwagger,
  swaggerFiles,
  swaggerHead,
  type BuiltSwaggerIndex,
} from '#virtualapi/discovery/openapi-v2/index.ts'
import { withEnums } from '#virtualapi/discovery/openapi-definitions.ts'
import { readGenerated } from '#virtualapi/kinds/resources/generated-facts.ts'
import { enumTexts, withEnumTexts } from './enum-texts.ts'
import { servedGroupVersions } from './resource-table.ts'

interface Swagger {
  readonly paths: Record<string, JsonObject>
  readonly definitions: Record<string, JsonObject>
  readonly parameters: JsonObject
}

/** Writes the document below `out`; `module` is the unpacked k8s.io/kubernetes. */
export function writeSwagger(module: string, out: string): void {
  const text = readFileSync(join(module, 'api/openapi-spec/swagger.json'), 'utf8')
  const swagger = withoutCborTypes(JSON.parse(text) as JsonObject) as unknown as Swagger
  const paths = servedPaths(swagger.paths, servedGroupVersions(module))
  const definitions = reachable(swagger, paths)
  const enums = readGenerated('enums') as Record<string, Record<string, string[]>>
  const texts = enumTexts(module)
  for (const [name, schema] of Object.entries(definitions))
    withEnumTexts(withEnums(schema, enums[name.replace(/^io\.k8s\./, '')] ?? {}), texts)
  const parameters = usedParameters(swagger.parameters, paths)
  const { json, protobuf, pathsEnd } = encodeSwagger({ ...swaggerHead, parameters }, { paths, definitions })
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, swaggerFiles.json), gzipSync(json, { level: 9 }))
  writeFileSync(join(out, swaggerFiles.protobuf), gzipSync(protobuf, { level: 9 }))
  cpSync(join(module, 'LICENSE'), join(out, 'LICENSE'))
  const index: BuiltSwaggerIndex = {
    version: kubernetesVersion,
    hash: createHash('sha512').update(json).digest('hex').toUpperCase(),
    pathsEnd,
    definitions: Object.keys(definitions),
  }
  // Written last: without it the directory is ignored.
  writeFileSync(join(out, 'index.json'), JSON.stringify(index))
  console.log(`dist/openapi/v2: ${Object.keys(paths).length} paths, ${Object.keys(definitions).length} definitions`)
}

/** The paths of these group versions, and those that name none. */
function servedPaths(
  paths: Record<string, JsonObject>,
  gvs: readonly { group: string; version: string }[],
): Record<string, JsonObject> {
  const versions = new Set(gvs.map(({ group, version }) => `${group}/${version}`))
  const groups = new Set(gvs.map(({ group }) => group))
  return Object.fromEntries(
    Object.entries(paths).filter(([path]) => {
      const [root = '', group = '', version = ''] = path.split('/').slice(1)
      if (root === 'logs') return false
      return (
        root !== 'apis' || group === '' || (version === '' ? groups.has(group) : versions.has(`${group}/${version}`))
      )
    }),
  )
}

/** The definitions that the paths refer to, directly or through other definitions. */
function reachable({ definitions, parameters }: Swagger, paths: JsonObject): Record<string, JsonObject> {
  const found = new Set<string>()
  const visit = (value: JsonValue): void => {
    for (const name of references(value, '#/definitions/')) {
      if (found.has(name)) continue
      found.add(name)
      visit(definitions[name] ?? {})
    }
  }
  visit(paths)
  visit(usedParameters(parameters, paths))
  return Object.fromEntries(Object.entries(definitions).filter(([name]) => found.has(name)))
}

function usedParameters(parameters: JsonObject, paths: JsonObject): JsonObject {
  const used = new Set(references(paths, '#/parameters/'))
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => used.has(name)))
}

function references(value: JsonValue, prefix: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => references(item, prefix))
  if (!isJsonObject(value)) return []
  const own = value['$ref']
  const rest = Object.values(value).flatMap((item) => references(item, prefix))
  return typeof own === 'string' && own.startsWith(prefix) ? [own.slice(prefix.length), ...rest] : rest
}

/** In v2, media types are items of lists. */
function withoutCborTypes(value: JsonObject): JsonObject {
  const strip = (item: JsonValue): JsonValue => {
    if (Array.isArray(item))
      return item
        .filter((entry) => typeof entry !== 'string' || !/^application\/([a-z-]+\+)?cbor(-seq)?$/.test(entry))
        .map(strip)
    return isJsonObject(item)
      ? Object.fromEntries(Object.entries(item).map(([key, child]) => [key, strip(child)]))
      : item
  }
  return strip(value) as JsonObject
}
