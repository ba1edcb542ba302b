// A condition (an item of allOf, anyOf, oneOf, or the schema of not) for objects that have only the fields of a schema:
// a required field that is not there makes it false, a rule about such a field says nothing.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

/** True: it always holds. False: it never does. */
export type Restricted = JsonObject | boolean

export function restrictCondition(condition: JsonObject, known: JsonObject, isResource: boolean): Restricted {
  const kept: JsonObject = {}
  /** Conditions that do not fit into a keyword of `kept`. */
  const more: JsonObject[] = []
  for (const [name, value] of Object.entries(condition)) {
    const found = restrictKeyword(name, value, { known, isResource, more })
    if (found === false) return false
    if (found !== true) kept[name] = found
  }
  if (more.length > 0) kept['allOf'] = [...(Array.isArray(kept['allOf']) ? kept['allOf'] : []), ...more]
  return Object.keys(kept).length === 0 ? true : kept
}

interface Context {
  readonly known: JsonObject
  readonly isResource: boolean
  readonly more: JsonObject[]
}

function restrictKeyword(name: string, value: JsonValue, context: Context): JsonValue {
  const { known, isResource } = context
  const each = (): Restricted[] =>
    (Array.isArray(value) ? value : []).filter(isJsonObject).map((one) => restrictCondition(one, known, isResource))
  switch (name) {
    case 'required':
      return Array.isArray(value) && value.some((key) => typeof key === 'string' && fieldIn(key, context) === undefined)
        ? false
        : value
    case 'properties':
      return restrictFields(value, context)
    case 'items': {
      const items = isJsonObject(known['items']) ? known['items'] : {}
      const found = isJsonObject(value) ? restrictCondition(value, items, false) : true
      if (found === false) context.more.push({ maxItems: 0 })
      return typeof found === 'boolean' ? true : found
    }
    case 'not': {
      const found = isJsonObject(value) ? restrictCondition(value, known, isResource) : false
      return typeof found === 'boolean' ? !found : found
    }
    case 'allOf': {
      const all = each()
      if (all.includes(false)) return false
      const left = all.filter(isJsonObject)
      return left.length === 0 ? true : left
    }
    case 'anyOf': {
      const all = each()
      if (all.includes(true)) return true
      const left = all.filter(isJsonObject)
      return left.length === 0 ? false : left
    }
    case 'oneOf':
      return oneOf(each())
    default:
      return value
  }
}

function oneOf(all: readonly Restricted[]): JsonValue {
  const always = all.filter((one) => one === true).length
  const left = all.filter(isJsonObject)
  if (always > 1 || (always === 0 && left.length === 0)) return false
  if (always === 0) return left
  // One holds, so no other may.
  return left.length === 0 ? true : [{}, ...left]
}

function restrictFields(value: JsonValue, context: Context): JsonValue {
  const kept: JsonObject = {}
  for (const [key, condition] of Object.entries(isJsonObject(value) ? value : {})) {
    const field = fieldIn(key, context)
    if (field === undefined || !isJsonObject(condition)) continue
    const found = restrictCondition(condition, field, field['x-kubernetes-embedded-resource'] === true)
    if (found === false) context.more.push({ not: { required: [key] } })
    else if (found !== true) kept[key] = found
  }
  return Object.keys(kept).length === 0 ? true : kept
}

function fieldIn(key: string, { known, isResource }: Context): JsonObject | undefined {
  const properties = isJsonObject(known['properties']) ? known['properties'] : {}
  const field = Object.hasOwn(properties, key) ? properties[key] : known['additionalProperties']
  if (isJsonObject(field)) return field
  const isAny = known['x-kubernetes-preserve-unknown-fields'] === true || field === true
  return isAny || (isResource && ['apiVersion', 'kind', 'metadata'].includes(key)) ? anyValue : undefined
}

const anyValue: JsonObject = { 'x-kubernetes-preserve-unknown-fields': true }
