// The growth of a small body that a tenant's schema can cause: values that its defaults add, and work for its
// validation rules.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'

/**
 * The number of values that defaults can add. A validation rule counts as one value, because it takes about as long.
 */
interface DefaultValues {
  /** The number for the object itself, whatever its content. */
  readonly toObject: number
  /** The largest number for each item of a list or map in the object. */
  readonly toItem: number
}

const known = new WeakMap<SchemaNode, DefaultValues>()

/** Counts the values in the defaults of a schema and its validation rules. The result is cached by schema. */
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

/** The number of JSON values in a value. Each full KiB of a text counts as one more. */
function valuesIn(value: JsonValue): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / 1024)
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, child) => sum + valuesIn(child ?? null), 1)
}
