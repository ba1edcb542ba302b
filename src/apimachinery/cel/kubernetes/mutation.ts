// The values that mutating admission policies make: `Object{spec: Object.spec{...}}` and `JSONPatch{op: ..., path:
// ...}`.
import { type JsonObject, type JsonValue, putField } from '#apimachinery/meta/index.ts'
import { type FunctionDeclaration, overload, type StructProvider } from '#apimachinery/cel/declarations/declarations.ts'
import { dynType, stringType, structType } from '#apimachinery/cel/types/cel-type.ts'
import { itemsOf } from '#apimachinery/cel/values/collections.ts'
import { equal } from '#apimachinery/cel/values/compare.ts'
import { jsonOf } from '#apimachinery/cel/values/json-values.ts'
import {
  type CelError,
  CelList,
  CelMap,
  CelObject,
  noSuchOverload,
  type Value,
} from '#apimachinery/cel/values/value.ts'

const objectName = 'Object'
const patchName = 'JSONPatch'

/** A part of an object as an apply configuration. */
export class ObjectValue extends CelObject {
  readonly typeName: string
  readonly fields: ReadonlyMap<string, Value>

  constructor(typeName: string, fields: ReadonlyMap<string, Value>) {
    super()
    this.typeName = typeName
    this.fields = fields
  }

  override equalTo(other: Value): boolean {
    if (!(other instanceof ObjectValue) || other.typeName !== this.typeName || other.fields.size !== this.fields.size)
      return false
    return Array.from(this.fields).every(([name, value]) => {
      const theirs = other.fields.get(name)
      return theirs !== undefined && equal(value, theirs) === true
    })
  }

  // A field that is not set reads as null, as upstream.
  override get(field: string): Value {
    return this.fields.get(field) ?? null
  }

  override has(field: string): boolean {
    return this.fields.has(field)
  }

  override get isZero(): boolean {
    return this.fields.size === 0
  }

  /** The value as JSON. Throws an Error where a value in it has no JSON form, or there is no room. */
  toJson(room: JsonRoom): JsonObject {
    const out: JsonObject = {}
    room.take(emptyBytes)
    for (const [name, value] of this.fields) {
      room.take(name.length + entryBytes)
      putField(out, name, mutationJson(value, room))
    }
    return out
  }

  /**
   * What is wrong with the type names, which must repeat the path of fields down from this value. Throws an Error where
   * there is no room for as many values.
   */
  typeErrors(room: JsonRoom): readonly string[] {
    const errors: string[] = []
    addTypeErrors(this, this.typeName, { errors, room })
    return errors
  }
}

/** The answer must not be much larger than the request. */
const maxTypeErrors = 100

interface TypeErrors {
  readonly errors: string[]
  readonly room: JsonRoom
}

function addTypeErrors(value: Value, path: string, found: TypeErrors): void {
  const { errors, room } = found
  if (errors.length >= maxTypeErrors) return
  room.take(1)
  if (value instanceof ObjectValue) {
    if (value.typeName !== path)
      errors.push(
        `unexpected type name ${JSON.stringify(value.typeName)}, expected ${JSON.stringify(path)}, ` +
          'which matches field name path from root Object type',
      )
    for (const [name, field] of value.fields) addTypeErrors(field, `${path}.${name}`, found)
  } else if (value instanceof CelList) {
    room.take(value.size)
    for (const item of itemsOf(value)) addTypeErrors(item, path, found)
  } else if (value instanceof CelMap)
    for (const key of value.keys()) addTypeErrors(value.find(key) ?? null, path, found)
}

/** Bytes of JSON that mutations may make. A value counts at each place where it is: in JSON, it is there as often. */
export class JsonRoom {
  #bytes: number
  readonly #within: JsonRoom | undefined

  /** `within`: a room that this one is a part of. */
  constructor(bytes: number, within?: JsonRoom) {
    this.#bytes = bytes
    this.#within = within
  }

  /** Throws an Error where there is no room. */
  take(bytes: number): void {
    this.#within?.take(bytes)
    this.#bytes -= bytes
    if (this.#bytes < 0) throw new Error('the values of mutations are too large')
  }
}

/** A list or a map takes more memory than its brackets say; the quotes, the colon and the comma of an entry. */
const [emptyBytes, entryBytes] = [16, 4]

const isContainer = (value: Value): boolean => value instanceof CelList || value instanceof CelMap

/** A value of a mutation as JSON. Throws an Error where it has no JSON form, or there is no room. */
export function mutationJson(value: Value, room: JsonRoom): JsonValue {
  if (value instanceof ObjectValue) return value.toJson(room)
  room.take(typeof value === 'string' ? value.length + 2 : isContainer(value) ? emptyBytes : 1)
  if (value instanceof CelList) {
    // Before it is copied.
    room.take(value.size)
    return itemsOf(value).map((item) => mutationJson(item, room))
  }
  if (value instanceof CelMap) {
    const out: JsonObject = {}
    for (const key of value.keys()) {
      if (typeof key !== 'string') throw new Error('a key of a map in a mutation is no string')
      room.take(key.length + entryBytes)
      putField(out, key, mutationJson(value.find(key) ?? null, room))
    }
    return out
  }
  const json = jsonOf(value)
  if (json === undefined) throw new Error('a value in a mutation has no JSON form')
  return json
}

/** One operation of a JSON patch. */
export class PatchValue extends CelObject {
  readonly typeName = patchName
  readonly op: string
  readonly path: string
  readonly from: string
  readonly value: Value | undefined

  constructor(fields: ReadonlyMap<string, Value>) {
    super()
    this.op = textOf(fields.get('op'))
    this.path = textOf(fields.get('path'))
    this.from = textOf(fields.get('from'))
    this.value = fields.get('value')
  }

  override equalTo(other: Value): boolean | CelError {
    if (!(other instanceof PatchValue)) return false
    if (this.op !== other.op || this.path !== other.path || this.from !== other.from) return false
    if (this.value === undefined || other.value === undefined) return this.value === other.value
    return equal(this.value, other.value)
  }

  override get(field: string): Value | undefined {
    switch (field) {
      case 'op':
      case 'path':
      case 'from':
        return this[field]
      case 'value':
        return this.value
      default:
        return undefined
    }
  }

  override has(field: string): boolean {
    const value = this.get(field)
    return value !== undefined && value !== ''
  }
}

const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : '')

const patchType = structType(patchName)
/** Of fields that a patch does not have: upstream names the type '' in its errors. */
const unknownType = structType('')
const textFields: ReadonlySet<string> = new Set(['op', 'path', 'from'])

/** The structs of mutations. Fields of objects are not checked before they are applied. */
export const mutationStructs: StructProvider = (name) => {
  if (name === patchName)
    return {
      type: patchType,
      fieldType: (field) => (textFields.has(field) ? stringType : field === 'value' ? dynType : unknownType),
      make: (fields) => new PatchValue(fields),
    }
  if (name !== objectName && !name.startsWith(`${objectName}.`)) return undefined
  return { type: structType(name), fieldType: () => dynType, make: (fields) => new ObjectValue(name, fields) }
}

/** jsonpatch.escapeKey(). */
export const mutationFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'jsonpatch.escapeKey',
    overloads: [
      overload('string_jsonpatch_escapeKey_string', [stringType], stringType, (text) =>
        typeof text === 'string' ? text.replaceAll(/[~/]/g, (char) => (char === '~' ? '~0' : '~1')) : noSuchOverload,
      ),
    ],
  },
]
