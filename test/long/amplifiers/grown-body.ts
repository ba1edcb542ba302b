// A body in which one place has grown to n entries, bytes or levels.
import { canGrow, type Place } from './places.ts'
import { keyOf, sampleValue } from './sample-value.ts'
import { resolved, type OpenApiDocument, type Schema } from './schema.ts'

type Container = Record<string, unknown>

/** Whether the entries of a list are all the same or all different. The keys of a map always differ. */
export type Entries = 'like' | 'distinct'

/** A copy of `base`, which is left as it is, with the place grown to n. What lies on the way there is added. */
export function grownBody(
  { document, schema: root }: { document: OpenApiDocument; schema: Schema },
  base: object,
  place: Place,
  { n, entries }: { n: number; entries: Entries },
): Container {
  const holder: Container = { body: structuredClone(base) }
  let container: Container | unknown[] = holder
  let key: string | number = 'body'
  let schema = root
  let name = ''
  for (const step of place.steps) {
    const next: unknown = Reflect.get(container, key)
    const isContainer = typeof next === 'object' && next !== null
    const value = isContainer ? next : sampleValue(document, schema, { name, index: 0 })
    Reflect.set(container, key, value)
    container = value as Container
    const { items, additionalProperties, properties } = resolved(document, schema)
    if (step === '[]') [key, schema] = [0, items ?? {}]
    else if (step === '{}') [key, schema] = [Object.keys(container)[0] ?? keyOf(name, 0), additionalProperties ?? {}]
    else [key, schema, name] = [step, properties?.[step] ?? {}, step]
  }
  Reflect.set(container, key, grown(document, place, { schema, name, n, entries, old: Reflect.get(container, key) }))
  return holder['body'] as Container
}

interface Growing {
  readonly schema: Schema
  readonly name: string
  readonly n: number
  readonly entries: Entries
  readonly old: unknown
}

function grown(document: OpenApiDocument, place: Place, { schema, name, n, entries, old }: Growing): unknown {
  const { items, additionalProperties, properties = {} } = resolved(document, schema)
  switch (place.kind) {
    case 'list':
      return Array.from({ length: n }, (_, i) =>
        sampleValue(document, items ?? {}, { name, index: entries === 'like' ? 0 : i }),
      )
    case 'map':
      return Object.fromEntries(
        Array.from({ length: n }, (_, i) => [
          keyOf(name, i),
          sampleValue(document, additionalProperties ?? {}, { name: 'value', index: entries === 'like' ? 0 : i }),
        ]),
      )
    case 'text':
      return 'a'.repeat(n)
    case 'siblings': {
      const of = Object.entries(properties).filter(([, property]) => canGrow(document, property))
      const each = of.map(([field, property]) => {
        const kind = resolved(document, property).items === undefined ? 'map' : 'list'
        const more = { schema: property, name: field, n: Math.ceil(n / of.length), entries, old: undefined }
        return [field, grown(document, { ...place, kind }, more)] as const
      })
      return { ...(typeof old === 'object' ? old : {}), ...Object.fromEntries(each) }
    }
    case 'nested':
      return nested(place.steps, n)
  }
}

/** The last way on which the schema comes back to itself, n times: `{"items":{"items":...}}`. */
function nested(steps: readonly string[], n: number): unknown {
  const last = steps.findLast((step) => step !== '[]' && step !== '{}') ?? 'a'
  const inMap = steps.at(-1) === '{}'
  const inList = steps.at(-1) === '[]'
  let value: unknown = {}
  for (let i = 0; i < n; i++) value = { [last]: inMap ? { a: value } : inList ? [value] : value }
  return value
}
