// JSON data as values: read where an expression reads it, never copied. A schema says what its numbers and strings
// mean.
import {
  fieldOf,
  isExactInteger,
  isJsonNumber,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '#apimachinery/meta/index.ts'
import { formatCheck, type SchemaNode } from '#apimachinery/schema/index.ts'
import { escapeFieldName, unescapeFieldName } from '#apimachinery/cel/types/field-names.ts'
import { withTypeAndMeta } from '#apimachinery/cel/types/declared-type.ts'
import { equal, equalBeside, equalTypedLists } from './compare.ts'
import { itemsOf } from './collections.ts'
import { parseDuration, parseTimestamp } from './times.ts'
import {
  CelDouble,
  CelError,
  type CelInt,
  CelList,
  CelMap,
  CelObject,
  CelTimestamp,
  noSuchOverload,
  type Value,
} from './value.ts'
import { lookAt, lookAtText, stepsOfEntry } from './work.ts'

/** JSON without a schema, as an expression sees it: whole numbers are ints. */
export function dynamicValue(json: JsonValue): Value {
  if (isJsonNumber(json)) return wholeNumber(json) ?? new CelDouble(Number(json))
  if (json === null || typeof json !== 'object') return json
  return Array.isArray(json) ? new DynamicList(json) : new DynamicMap(json)
}

function wholeNumber(json: JsonValue): CelInt | undefined {
  if (typeof json === 'bigint') return json
  // -0 is no int.
  return typeof json === 'number' && Number.isSafeInteger(json) ? json + 0 : undefined
}

class DynamicList extends CelList {
  readonly json: readonly JsonValue[]

  constructor(json: readonly JsonValue[]) {
    super()
    this.json = json
  }

  override get size(): number {
    return this.json.length
  }

  override at(index: number): Value {
    return dynamicValue(this.json[index] ?? null)
  }
}

class DynamicMap extends CelMap {
  readonly json: JsonObject

  constructor(json: JsonObject) {
    super()
    this.json = json
  }

  override get size(): number {
    return Object.keys(this.json).length
  }

  override find(key: Value): Value | undefined {
    const found = typeof key === 'string' ? fieldOf(this.json, key) : undefined
    return found === undefined ? undefined : dynamicValue(found)
  }

  override keys(): readonly Value[] {
    return Object.keys(this.json)
  }
}

const invalid = (message: string): CelError => new CelError(`invalid data, ${message}`)
const goType = (json: JsonValue): string =>
  typeof json === 'string'
    ? 'string'
    : typeof json === 'boolean'
      ? 'bool'
      : isJsonNumber(json)
        ? isExactInteger(json)
          ? 'int64'
          : 'float64'
        : Array.isArray(json)
          ? '[]interface {}'
          : 'map[string]interface {}'

/** JSON by its structural schema. An error as a value where it does not fit. */
export function typedValue(json: JsonValue, schema: SchemaNode): Value {
  if (json === null) return schema.nullable === true ? null : invalid('got null for schema with nullable=false')
  if (schema.intOrString === true) {
    if (typeof json === 'string') return json
    return wholeNumber(json) ?? invalid('expected XIntOrString value to be either a string or integer')
  }
  switch (schema.type) {
    case 'object':
      if (!isJsonObject(json)) return invalid('expected a map for the provided schema with type=object')
      return new TypedMap(json, schema.embeddedResource === true ? withTypeAndMeta(schema) : schema)
    case 'array':
      if (!Array.isArray(json)) return invalid('expected an array for the provided schema with type=array')
      return typedList(json, schema)
    case 'string':
      return typeof json === 'string'
        ? typedString(json, schema.format)
        : invalid(`expected string, got ${goType(json)}`)
    case 'number':
      return isJsonNumber(json) ? new CelDouble(Number(json)) : invalid(`expected float, got ${goType(json)}`)
    case 'integer':
      return wholeNumber(json) ?? invalid(`expected int, got ${goType(json)}`)
    case 'boolean':
      return typeof json === 'boolean' ? json : invalid(`expected bool, got ${goType(json)}`)
    default:
      return schema.preserveUnknownFields === true ? new PreservedValue(json) : withoutType()
  }
}

function withoutType(): CelError {
  const known = 'expected object, array, number, integer, boolean or string'
  const marks = 'or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true'
  return new CelError(`invalid type, ${known}, ${marks}, got `)
}

function typedString(text: string, format: string | undefined): Value {
  switch (format) {
    case 'duration':
      return parseDuration(text) ?? new CelError(`Invalid duration ${text}: time: invalid duration "${text}"`)
    case 'date':
      return timestampOr(`${text}T00:00:00Z`, `Invalid date formatted string ${text}`)
    case 'date-time':
      if (formatCheck('date-time')?.(text) === false) return new CelError(`Invalid date-time formatted string ${text}`)
      return timestampOr(text.toUpperCase(), `Invalid date-time formatted string ${text}`)
    case 'byte':
      return Buffer.from(text, 'base64')
    default:
      return text
  }
}

function timestampOr(text: string, message: string): Value {
  const parsed = parseTimestamp(text)
  return parsed instanceof CelTimestamp ? parsed : new CelError(message)
}

function typedList(json: readonly JsonValue[], { items, listType, listMapKeys = [] }: SchemaNode): Value {
  if (items === undefined) return new CelError('invalid array type, expected Items with a non-empty Schema')
  if (listType === 'map') return new KeyedList(json, items, listMapKeys)
  return listType === 'set' ? new SetList(json, items) : new TypedList(json, items)
}

/** A value that a schema keeps without knowing it: it can only be compared. */
class PreservedValue extends CelObject {
  readonly typeName = 'unknown'
  readonly json: JsonValue

  constructor(json: JsonValue) {
    super()
    this.json = json
  }

  override equalTo(other: Value): boolean {
    return other instanceof PreservedValue && sameJson(this.json, other.json)
  }
}

function sameJson(a: JsonValue, b: JsonValue): boolean {
  return equal(dynamicValue(a), dynamicValue(b)) === true
}

class TypedMap extends CelMap {
  readonly json: JsonObject
  readonly schema: SchemaNode

  constructor(json: JsonObject, schema: SchemaNode) {
    super()
    this.json = json
    this.schema = schema
  }

  override get size(): number {
    return Object.keys(this.json).length
  }

  #schemaOf(key: string): SchemaNode | undefined {
    const { properties, additionalProperties } = this.schema
    if (properties !== undefined) return Object.hasOwn(properties, key) ? properties[key] : undefined
    return typeof additionalProperties === 'object' ? additionalProperties : undefined
  }

  override find(key: Value): Value | undefined {
    if (typeof key !== 'string') return key instanceof CelError ? key : noSuchOverload
    const isObject = this.schema.properties !== undefined
    const name = isObject ? unescapeFieldName(key) : key
    if (name === undefined) return undefined
    const json = fieldOf(this.json, name)
    if (json === undefined || (isObject && json === null)) return undefined
    const schema = this.#schemaOf(name)
    return schema === undefined ? undefined : typedValue(json, schema)
  }

  override keys(): readonly Value[] {
    const isObject = this.schema.properties !== undefined
    return Object.keys(this.json)
      .filter((key) => this.#schemaOf(key) !== undefined)
      .map((key) => (isObject ? (escapeFieldName(key) ?? key) : key))
  }

  override equalTo(other: Value): boolean | CelError {
    if (!(other instanceof CelMap)) return noSuchOverload
    if (this.size !== other.size) return false
    for (const [key, json] of Object.entries(this.json)) {
      const same = this.#schemaOf(key) === undefined ? sameUnknown(json, other, key) : this.#sameField(other, key)
      if (same !== true) return same
    }
    return true
  }

  #sameField(other: CelMap, key: string): boolean | CelError {
    const [mine, theirs] = [this.find(key), other.find(key)]
    if (mine === undefined || theirs === undefined) return mine === theirs
    return equalBeside(mine, theirs)
  }
}

// What a schema does not know is only compared where both have it.
function sameUnknown(json: JsonValue, other: CelMap, key: string): boolean | CelError {
  if (!(other instanceof TypedMap)) return noSuchOverload
  const theirs = fieldOf(other.json, key)
  return theirs === undefined || sameJson(json, theirs)
}

class TypedList extends CelList {
  readonly json: readonly JsonValue[]
  readonly items: SchemaNode

  constructor(json: readonly JsonValue[], items: SchemaNode) {
    super()
    this.json = json
    this.items = items
  }

  override get size(): number {
    return this.json.length
  }

  override at(index: number): Value {
    return typedValue(this.json[index] ?? null, this.items)
  }

  override equalTo(other: Value): boolean | CelError {
    return equalTypedLists(this, other)
  }
}

/** A list of type map: order does not matter, and appending replaces the items with the same keys. */
class KeyedList extends TypedList {
  readonly #keys: readonly string[]
  #index: Map<string, number> | undefined

  constructor(json: readonly JsonValue[], items: SchemaNode, keys: readonly string[]) {
    super(json, items)
    this.#keys = keys
  }

  #keyOf(json: JsonValue | undefined): string | undefined {
    if (!isJsonObject(json)) return undefined
    return JSON.stringify(this.#keys.map((key) => fieldOf(json, escapeFieldName(key) ?? key) ?? null))
  }

  #indexed(): Map<string, number> {
    // A schema makes a new list where a value is read again.
    if (this.#index === undefined) lookAtJson(this.json)
    return (this.#index ??= new Map(this.json.map((item, i) => [this.#keyOf(item) ?? '', i])))
  }

  override equalTo(other: Value): boolean | CelError {
    if (!(other instanceof CelList)) return noSuchOverload
    if (this.size !== other.size) return false
    lookAt(other.size)
    for (let i = 0; i < other.size; i++) {
      const theirs = other.at(i)
      const place = this.#indexed().get(this.#keyOf(jsonOf(theirs)) ?? ' ')
      if (place === undefined) return false
      const same = equalBeside(this.at(place), theirs)
      if (same !== true) return same
    }
    return true
  }

  override append(other: CelList): CelList {
    lookAt(this.size + other.size)
    const merged = [...this.json]
    const places = new Map(this.#indexed())
    for (let i = 0; i < other.size; i++) {
      const json = jsonOf(other.at(i))
      const place = places.get(this.#keyOf(json) ?? ' ')
      if (place === undefined) merged.push(json ?? null)
      else merged[place] = json ?? null
    }
    return new KeyedList(merged, this.items, this.#keys)
  }
}

/** A list of type set: order does not matter, and appending adds what is not there yet. */
class SetList extends TypedList {
  #known: Set<string> | undefined

  #keyed(): Set<string> {
    if (this.#known === undefined) lookAtJson(this.json)
    return (this.#known ??= new Set(this.json.map((item) => JSON.stringify(item))))
  }

  override equalTo(other: Value): boolean | CelError {
    if (!(other instanceof CelList)) return noSuchOverload
    if (this.size !== other.size) return false
    const known = this.#keyed()
    for (let i = 0; i < other.size; i++) if (!known.has(setKey(jsonOf(other.at(i))))) return false
    return true
  }

  override append(other: CelList): CelList {
    lookAt(this.size + other.size)
    const merged = [...this.json]
    const known = new Set(this.#keyed())
    for (let i = 0; i < other.size; i++) {
      const json = jsonOf(other.at(i)) ?? null
      const text = setKey(json)
      if (known.has(text)) continue
      known.add(text)
      merged.push(json)
    }
    return new SetList(merged, this.items)
  }
}

function setKey(json: JsonValue | undefined): string {
  lookAtJson(json ?? null)
  return JSON.stringify(json)
}

/** Counts JSON that is read or written as a whole. */
function lookAtJson(json: JsonValue | readonly JsonValue[]): void {
  lookAt(1)
  if (typeof json === 'string') lookAtText(json.length)
  else if (typeof json === 'object' && json !== null) for (const value of Object.values(json)) lookAtJson(value)
}

/** The JSON of a value; undefined for values that JSON has no form for. */
export function jsonOf(value: Value): JsonValue | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || isJsonNumber(value)) return value
  if (value instanceof CelDouble) return value.value
  if (
    value instanceof DynamicMap ||
    value instanceof DynamicList ||
    value instanceof TypedMap ||
    value instanceof TypedList
  )
    return value.json as JsonValue
  if (value instanceof CelList) {
    lookAt(value.size)
    const items = itemsOf(value).map(jsonOf)
    return items.includes(undefined) ? undefined : (items as JsonValue[])
  }
  return value instanceof CelMap ? jsonOfMap(value) : undefined
}

function jsonOfMap(map: CelMap): JsonObject | undefined {
  const out: JsonObject = {}
  lookAt(map.size * stepsOfEntry)
  for (const key of map.keys()) {
    const json = jsonOf(map.find(key) ?? null)
    if (typeof key !== 'string' || json === undefined) return undefined
    Object.defineProperty(out, key, { value: json, enumerable: true, configurable: true, writable: true })
  }
  return out
}
