// Every list, map and text that a client can fill, in the bodies of all requests in the OpenAPI documents.
import { referenceOf, resolved, type OpenApiDocument, type Schema } from './schema.ts'

/** What can grow there. `siblings`: all lists and maps of one object together; `nested`: a schema within itself. */
export type PlaceKind = 'list' | 'map' | 'text' | 'siblings' | 'nested'

export interface Place {
  readonly kind: PlaceKind
  /** The path to it in the body: names of fields, `[]` for the entry of a list, `{}` for the entry of a map. */
  readonly steps: readonly string[]
  readonly schema: Schema
  /** Equal for the same field of the same type wherever it occurs. */
  readonly signature: string
}

/** A request that takes a body. */
export interface BodyRequest {
  readonly document: OpenApiDocument
  readonly method: 'POST' | 'PUT'
  /** As the document has it: `/api/v1/namespaces/{namespace}/pods/{name}/status`. */
  readonly path: string
  readonly schema: Schema
  readonly places: readonly Place[]
}

/** All requests of a document that create an object, and those of subresources. */
export function bodyRequests(document: OpenApiDocument): BodyRequest[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    (['post', 'put'] as const).flatMap((verb) => {
      const schema = Object.values(operations[verb]?.requestBody?.content ?? {})[0]?.schema
      // Updates of whole objects are left out here: they are tried on the objects that the POSTs create.
      if (schema === undefined || (verb === 'put' && path.endsWith('{name}'))) return []
      const method = verb === 'post' ? 'POST' : 'PUT'
      return [{ document, method, path, schema, places: placesOf(document, schema) }] as const
    }),
  )
}

function placesOf(document: OpenApiDocument, root: Schema): Place[] {
  const found: Place[] = []
  const walk = (schema: Schema, steps: readonly string[], within: readonly string[]): void => {
    const reference = referenceOf(schema)
    const owner = reference ?? within.at(-1) ?? ''
    const field = steps.findLast((step) => step !== '[]' && step !== '{}') ?? ''
    const add = (kind: PlaceKind): void => {
      found.push({ kind, steps, schema, signature: `${kind} ${within.at(-1) ?? owner}.${field}` })
    }
    if (reference !== undefined && within.includes(reference)) {
      add('nested')
      return
    }
    const inside = reference === undefined ? within : [...within, reference]
    const { type, items, properties, additionalProperties } = resolved(document, schema)
    if (items !== undefined) {
      add('list')
      walk(items, [...steps, '[]'], inside)
    } else if (additionalProperties !== undefined) {
      add('map')
      walk(additionalProperties, [...steps, '{}'], inside)
    } else if (properties !== undefined) {
      const growing = Object.values(properties).filter((property) => canGrow(document, property))
      if (growing.length > 1) add('siblings')
      for (const [name, property] of Object.entries(properties)) walk(property, [...steps, name], inside)
    } else if (type === 'string') add('text')
  }
  walk(root, [], [])
  // Left out: fields that identify the object, and fields that only a server writes.
  return found.filter(({ steps }) => !['apiVersion', 'kind'].includes(steps[0] ?? '') && !isServers(steps))
}

const isServers = ([first, second = '']: readonly string[]): boolean =>
  first === 'metadata' && ['creationTimestamp', 'deletionTimestamp', 'namespace', 'selfLink'].includes(second)

/** Whether entries can be added to it. */
export function canGrow(document: OpenApiDocument, schema: Schema): boolean {
  const { items, additionalProperties } = resolved(document, schema)
  return items !== undefined || additionalProperties !== undefined
}
