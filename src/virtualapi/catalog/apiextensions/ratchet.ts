// The unchanged parts of an object, in which a failure is only a warning (KEP-4008).
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { fieldBefore, fieldSchemaOf, isUnchanged, type SchemaNode } from '#apimachinery/schema/index.ts'

/** A value and the old value that it replaces. */
class Pair {
  readonly value: JsonValue
  readonly old: JsonValue | undefined
  readonly schema: SchemaNode
  #before: ((item: JsonValue) => JsonValue | undefined) | undefined
  #unchanged: boolean | undefined

  constructor(value: JsonValue, old: JsonValue | undefined, schema: SchemaNode) {
    this.value = value
    this.old = old
    this.schema = schema
  }

  isUnchanged(): boolean {
    return (this.#unchanged ??= isUnchanged(this.value, this.old, this.schema))
  }

  field(name: string): Pair | undefined {
    const schema = fieldSchemaOf(this.schema, name)
    const old = fieldBefore(this.old, name)
    if (schema === undefined || old === undefined || !isJsonObject(this.value)) return undefined
    return new Pair(this.value[name] ?? null, old, schema)
  }

  item(index: number): Pair | undefined {
    const { items } = this.schema
    const value = Array.isArray(this.value) ? (this.value[index] ?? null) : null
    const old = (this.#before ??= itemIndex(this.old, this.schema))(value)
    return items === undefined || old === undefined ? undefined : new Pair(value, old, items)
  }
}

/** The place of a walk through a changed object, with the old value at that place. */
export class Ratchet {
  static readonly none = new Ratchet(undefined, undefined)
  readonly #current: Pair | undefined
  /** The closest value above that has an old value. It counts if there is no current value. */
  readonly #nearest: Pair | undefined

  private constructor(current: Pair | undefined, nearest: Pair | undefined) {
    this.#current = current
    this.#nearest = nearest
  }

  static root(value: JsonValue, old: JsonValue | undefined, schema: SchemaNode): Ratchet {
    return new Ratchet(new Pair(value, old, schema), undefined)
  }

  field(name: string): Ratchet {
    if (this.#current === undefined) return this
    if (this.#nearest === undefined && (name === 'apiVersion' || name === 'kind')) return Ratchet.none
    return new Ratchet(this.#current.field(name), this.#current)
  }

  item(index: number): Ratchet {
    return this.#current === undefined ? this : new Ratchet(this.#current.item(index), this.#current)
  }

  /** The same place without an old value of its own: only the value above counts. */
  uncorrelated(): Ratchet {
    return new Ratchet(undefined, this.#nearest)
  }

  isUnchanged(): boolean {
    return (this.#current ?? this.#nearest)?.isUnchanged() ?? false
  }
}

/**
 * Returns a function that finds the old item with the same keys; undefined if there is none. Only items of lists of
 * type map can be found.
 */
export function itemIndex(
  old: JsonValue | undefined,
  { listType, listMapKeys = [] }: SchemaNode,
): (item: JsonValue) => JsonValue | undefined {
  if (listType !== 'map' || !Array.isArray(old)) return () => undefined
  const keyOf = (item: JsonValue): string | undefined =>
    isJsonObject(item) ? JSON.stringify(listMapKeys.map((key) => item[key] ?? null)) : undefined
  const byKey = new Map(old.map((item) => [keyOf(item), item]))
  return (item) => {
    const key = keyOf(item)
    return key === undefined ? undefined : byKey.get(key)
  }
}
