// The part of another API server in the OpenAPI v2 document: the paths of the group version that it serves, and the
// definitions that they refer to. The other server belongs to a tenant, so the size of its part is bounded, and its
// document is read in turns.
import { createHash } from 'node:crypto'
import { isJsonObject, type GroupVersion, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { openApiKey } from '#virtualapi/discovery/openapi-index.ts'
import type { SwaggerSource } from './fragment.ts'
import type { SwaggerParts } from './swagger.ts'

/** The bytes of paths or definitions that are encoded before other work may run. */
const encodedAtOnce = 64 * 1024
/**
 * The most bytes of JSON of a whole source, and of one path or definition in it. One path or definition is encoded in
 * one step.
 */
const [mostBytes, mostBytesOfOne] = [8 * 1024 * 1024, 512 * 1024]
const definitionPrefix = '#/definitions/'
const parameterPrefix = '#/parameters/'

export interface RemoteSwagger extends SwaggerSource {
  /** The approximate size of its JSON. */
  readonly bytes: number
}

interface Member {
  readonly name: string
  readonly value: JsonObject
  readonly bytes: number
}

/**
 * The source for a group version in the document of the server that serves it; undefined if the document has no paths
 * of the group version, or if the source becomes too large. Awaits `turn` between pieces of work.
 */
export async function remoteSwagger(
  gv: GroupVersion,
  document: JsonObject,
  turn: () => Promise<void> | undefined,
): Promise<RemoteSwagger | undefined> {
  const inlining = new Inlining(membersOf(document['parameters']))
  const paths: Member[] = []
  for (const [name, path] of pathsOf(gv, document)) {
    const value = inlining.inlined(path)
    if (!inlining.fits) return undefined
    paths.push({ name, value: value as JsonObject, bytes: inlining.takeBytes() })
    await turn()
  }
  if (paths.length === 0) return undefined
  const definitions = await referredTo(paths, membersOf(document['definitions']), { inlining, turn })
  if (definitions === undefined) return undefined
  const hash = createHash('sha512')
  for (const { name, value } of [...paths, ...definitions]) {
    hash.update(JSON.stringify([name, value]))
    await turn()
  }
  return {
    content: `remote ${hash.digest('hex')}`,
    bytes: inlining.bytes,
    parts: (known) => partsOf(paths, definitions, known),
  }
}

function pathsOf(gv: GroupVersion, document: JsonObject): [string, JsonValue][] {
  const root = `/${openApiKey(gv)}`
  return Object.entries(membersOf(document['paths'])).filter(
    ([path, value]) => isJsonObject(value) && (path === root || path.startsWith(`${root}/`)),
  )
}

const membersOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})

/**
 * Replaces references to the other document's parameters by these parameters, because our document may have other
 * parameters with the same names. Counts the resulting bytes, because a small document may refer to a large parameter
 * many times.
 */
class Inlining {
  /** The bytes of all values so far. */
  bytes = 0
  readonly #parameters: JsonObject
  readonly #sizes = new Map<string, number>()
  #ofOne = 0

  constructor(parameters: JsonObject) {
    this.#parameters = parameters
  }

  get fits(): boolean {
    return this.bytes <= mostBytes && this.#ofOne <= mostBytesOfOne
  }

  /** The bytes since the last call. */
  takeBytes(): number {
    const bytes = this.#ofOne
    this.#ofOne = 0
    return bytes
  }

  /** The value with its parameters. Stops when the bounds are exceeded; then the result is not used. */
  inlined(value: JsonValue): JsonValue {
    if (!this.fits) return value
    const reference = isJsonObject(value) ? value['$ref'] : undefined
    if (typeof reference === 'string' && reference.startsWith(parameterPrefix)) {
      const name = reference.slice(parameterPrefix.length)
      const parameter = Object.hasOwn(this.#parameters, name) ? this.#parameters[name] : undefined
      if (parameter !== undefined) {
        this.#count(this.#sizeOf(name, parameter))
        return parameter
      }
    }
    if (Array.isArray(value)) {
      this.#count(2 + value.length)
      return value.map((item) => this.inlined(item))
    }
    if (!isJsonObject(value)) {
      this.#count(typeof value === 'string' ? value.length + 2 : 8)
      return value
    }
    this.#count(2)
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        this.#count(key.length + 4)
        return [key, this.inlined(item)]
      }),
    )
  }

  /** Counts the bytes of a definition, which keeps its references. */
  count(value: JsonObject): void {
    this.#count(JSON.stringify(value).length)
  }

  #sizeOf(name: string, parameter: JsonValue): number {
    const known = this.#sizes.get(name)
    if (known !== undefined) return known
    const size = JSON.stringify(parameter).length
    this.#sizes.set(name, size)
    return size
  }

  #count(bytes: number): void {
    this.bytes += bytes
    this.#ofOne += bytes
  }
}

/**
 * The definitions that the paths refer to, directly or through other definitions; undefined if the definitions are too
 * large.
 */
async function referredTo(
  paths: readonly Member[],
  all: JsonObject,
  { inlining, turn }: { readonly inlining: Inlining; readonly turn: () => Promise<void> | undefined },
): Promise<Member[] | undefined> {
  const found: Member[] = []
  const names = new Set<string>()
  const pending: JsonObject[] = paths.map(({ value }) => value)
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    for (const name of referencesIn(value)) {
      const definition = Object.hasOwn(all, name) && !names.has(name) ? all[name] : undefined
      if (!isJsonObject(definition)) continue
      names.add(name)
      inlining.count(definition)
      if (!inlining.fits) return undefined
      found.push({ name, value: definition, bytes: inlining.takeBytes() })
      pending.push(definition)
    }
    await turn()
  }
  return found
}

/** Names of the definitions that a value refers to. */
function referencesIn(root: JsonObject): Set<string> {
  const names = new Set<string>()
  // A schema that was inlined in many places is searched once.
  const seen = new Set<JsonValue>()
  const pending: JsonValue[] = [root]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    for (const item of Array.isArray(value) ? value : Object.values(value)) pending.push(item)
    const reference = isJsonObject(value) ? value['$ref'] : undefined
    if (typeof reference === 'string' && reference.startsWith(definitionPrefix))
      names.add(reference.slice(definitionPrefix.length))
  }
  return names
}

/** The parts in slices. Definitions whose names our document has already, such as ObjectMeta, are left out. */
function* partsOf(
  paths: readonly Member[],
  definitions: readonly Member[],
  known: ReadonlySet<string>,
): Generator<SwaggerParts> {
  for (const slice of slices(paths)) yield { paths: objectOf(slice), definitions: {} }
  const missing = definitions.filter(({ name }) => !known.has(name))
  for (const slice of slices(missing)) yield { paths: {}, definitions: objectOf(slice) }
}

function objectOf(members: readonly Member[]): Record<string, JsonObject> {
  return Object.fromEntries(members.map(({ name, value }) => [name, value]))
}

function* slices(members: readonly Member[]): Generator<readonly Member[]> {
  let [slice, bytes]: [Member[], number] = [[], 0]
  for (const member of members) {
    slice.push(member)
    bytes += member.bytes
    if (bytes < encodedAtOnce) continue
    yield slice
    ;[slice, bytes] = [[], 0]
  }
  if (slice.length > 0) yield slice
}
