// The part of another API server in the OpenAPI v2 document: the paths of the group version that it serves, and the
// definitions that they refer to.
import { isJsonObject, type GroupVersion, type JsonObject, type JsonValue } from '../../../apimachinery/meta/index.ts'
import { contentHash } from '../discovery-document.ts'
import { openApiKey } from '../openapi-index.ts'
import type { SwaggerSource } from './fragment.ts'
import type { SwaggerParts } from './swagger.ts'

/** Paths or definitions that are encoded before others may run. */
const encodedAtOnce = 20
const definitionPrefix = '#/definitions/'
const parameterPrefix = '#/parameters/'

/** The source for a group version in the document of the server that serves it; undefined if that has no such paths. */
export function remoteSwagger(gv: GroupVersion, document: JsonObject): SwaggerSource | undefined {
  const paths = pathsOf(gv, document)
  if (Object.keys(paths).length === 0) return undefined
  const all = membersOf(document['definitions'])
  const parameters = membersOf(document['parameters'])
  const inlined = withParameters(paths, parameters) as JsonObject
  const definitions = referredTo(inlined, all)
  return {
    content: `remote ${contentHash(JSON.stringify([inlined, definitions]))}`,
    parts: (known) => partsOf(inlined, definitions, known),
  }
}

function pathsOf(gv: GroupVersion, document: JsonObject): JsonObject {
  const root = `/${openApiKey(gv)}`
  const rows = Object.entries(membersOf(document['paths'])).filter(
    ([path, value]) => isJsonObject(value) && (path === root || path.startsWith(`${root}/`)),
  )
  return Object.fromEntries(rows)
}

const membersOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})

/** The other document's parameters in place of references to them: ours may have others of the same name. */
function withParameters(value: JsonValue, parameters: JsonObject): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withParameters(item, parameters))
  if (!isJsonObject(value)) return value
  const reference = value['$ref']
  if (typeof reference === 'string' && reference.startsWith(parameterPrefix)) {
    const name = reference.slice(parameterPrefix.length)
    return Object.hasOwn(parameters, name) ? (parameters[name] ?? value) : value
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withParameters(item, parameters)]))
}

/** The definitions that the paths refer to, and those that these refer to. */
function referredTo(paths: JsonObject, all: JsonObject): Record<string, JsonObject> {
  const found: Record<string, JsonObject> = {}
  const pending: JsonValue[] = [paths]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (Array.isArray(value)) {
      for (const item of value) pending.push(item)
      continue
    }
    if (!isJsonObject(value)) continue
    for (const item of Object.values(value)) pending.push(item)
    const reference = value['$ref']
    if (typeof reference !== 'string' || !reference.startsWith(definitionPrefix)) continue
    const name = reference.slice(definitionPrefix.length)
    const definition = Object.hasOwn(all, name) && !Object.hasOwn(found, name) ? all[name] : undefined
    if (!isJsonObject(definition)) continue
    found[name] = definition
    pending.push(definition)
  }
  return found
}

/** Definitions of names that we have already, such as ObjectMeta, stay ours. */
function* partsOf(
  paths: JsonObject,
  definitions: Readonly<Record<string, JsonObject>>,
  known: ReadonlySet<string>,
): Generator<SwaggerParts> {
  for (const slice of slices(Object.entries(paths)))
    yield { paths: Object.fromEntries(slice) as Record<string, JsonObject>, definitions: {} }
  const missing = Object.entries(definitions).filter(([name]) => !known.has(name))
  for (const slice of slices(missing)) yield { paths: {}, definitions: Object.fromEntries(slice) }
}

function* slices<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += encodedAtOnce) yield items.slice(from, from + encodedAtOnce)
}
