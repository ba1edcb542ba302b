// Validation of a value before its fields are owned: the value must fit its type, and list items must be
// distinguishable.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType } from './field-type.ts'
import { itemElement } from './list-items.ts'
import { elementText, fieldElement } from './path-element.ts'
import { boxed, scalarProblem, TypedProblems } from './typed-errors.ts'

/** Throws a TypedError that names all misfits. `allowDuplicates`: items of a list may have the same keys. */
export function requireTyped(
  value: JsonValue,
  type: FieldType,
  { allowDuplicates }: { allowDuplicates: boolean },
): void {
  const validator = new Validator(allowDuplicates)
  validator.check(value, type)
  validator.problems.throwIfAny()
}

class Validator {
  readonly problems = new TypedProblems()
  readonly #allowDuplicates: boolean

  constructor(allowDuplicates: boolean) {
    this.#allowDuplicates = allowDuplicates
  }

  check(value: JsonValue, type: FieldType): void {
    const shape = shapeOf(type, value)
    if (shape === undefined) this.problems.add('schema error: invalid atom: inlined')
    else if (shape === 'scalar') this.#scalar(value, type)
    else if (value === null) return
    else if (shape === 'list') this.#list(value, type.list)
    else this.#map(value, type.map)
  }

  #scalar(value: JsonValue, { scalar = 'untyped' }: FieldType): void {
    const problem = scalarProblem(scalar, value)
    if (problem !== undefined) this.problems.add(problem)
  }

  #list(value: JsonValue, list: ListType | undefined): void {
    if (list === undefined) return
    if (!Array.isArray(value)) {
      this.problems.add(`expected list, got ${boxed(value)}`)
      return
    }
    const seen = new Set<string>()
    for (const [i, item] of value.entries()) {
      let element = `i:${i}`
      if (!list.atomic) {
        try {
          element = itemElement(list, item)
        } catch (error) {
          // Upstream does not check further items either.
          this.problems.add(`element ${i}: ${(error as Error).message}`)
          return
        }
        if (seen.has(element) && !this.#allowDuplicates)
          this.problems.add(`duplicate entries for key ${elementText(element)}`)
        seen.add(element)
      }
      const before = this.problems.count
      this.check(item, list.items)
      if (this.problems.count > before) this.problems.prefix(before, elementText(element))
    }
  }

  #map(value: JsonValue, map: MapType | undefined): void {
    if (map === undefined) return
    if (!isJsonObject(value)) this.problems.add(`expected map, got ${boxed(value)}`)
    else this.#fields(value, map)
  }

  #fields(value: JsonObject, map: MapType): void {
    for (const name of Object.keys(value)) {
      const type = typeOfField(map, name)
      if (type === undefined) {
        this.problems.add('field not declared in schema', elementText(fieldElement(name)))
        return
      }
      const before = this.problems.count
      this.check(value[name] ?? null, type)
      if (this.problems.count > before) this.problems.prefix(before, elementText(fieldElement(name)))
    }
  }
}
