// The growth that a tenant's schema can cause of a small body: values by its defaults, and work by its validation
// rules.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'

/** Values that defaults can add; a validation rule counts as one, which takes about as long. */
interface DefaultValues {
  /** To the object, whatever is in it. */
  readonly toObject: number
  /** At most to each item of a list or map in it. */
  readonly toItem: number
}

const known = new WeakMap<SchemaNode, DefaultValues>()

/** Counts the values in the defaults of a schema, and its validation rules; once per schema. */
export function defaultValuesOf(schema: SchemaNode): DefaultValues {
  let values = known.get(schema)
  if (values === undefined) known.set(schema, (values = count(schema)))
  return values
}

function count(schema: SchemaNode): DefaultValues {
  let toObject = (schema.default === undefined ? 0 : valuesIn(schema.default)) + (schema.validations?.length ?? 0)
  let toItem = 0
  for (const property of Object.values(schema.properties ?? {})) {
    const below = count(property)
    toObject += below.toObject
    toItem = Math.max(toItem, below.toItem)
  }
  for (const items of [schema.items, schema.additionalProperties]) {
    if (typeof items !== 'object') continue
    const below = count(items)
    toItem = Math.max(toItem, below.toObject, below.toItem)
  }
  return { toObject, toItem }
}

/** A KiB of text counts as one value. */
function valuesIn(value: JsonValue): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / 1024)
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, child) => sum + valuesIn(child ?? null), 1)
}
