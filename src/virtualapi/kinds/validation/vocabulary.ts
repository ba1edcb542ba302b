// The functions from which the rules of the built-in kinds are composed. Rules are composed once, when their module is
// loaded, so that validation creates no closures. An absent value is valid unless a function says otherwise.
import { isDeepStrictEqual } from 'node:util'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Int64, JsonValue, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { causesOf, type Report, type Rule } from './report.ts'

export type { Report, Rule } from './report.ts'
export { causesOf } from './report.ts'

/** The members of an object that rules read. */
export interface ObjectOf<Spec, Status = unknown> {
  readonly metadata: ObjectMeta
  readonly spec: Spec
  readonly status?: Status
}

type Absent = null | undefined
/** True for values that Go treats as absent. */
const isUnset = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** Validates an object for KindRules. The context of the rule is the stored object; undefined for a new one. */
export function validating<T>(rule: Rule<T, T | undefined>): (object: KubeObject, old?: KubeObject) => StatusCause[] {
  return (object, old) => causesOf(rule, '', object as unknown as T, old as unknown as T | undefined)
}

/** As `validating`, for a rule of the spec alone. */
export function validatingSpec<T>(rule: Rule<T>): (object: KubeObject) => StatusCause[] {
  return (object) => causesOf(rule, 'spec', object['spec'] as T)
}

/** Validates a change for KindRules. The context of the rule is the stored object. */
export function validatingChange<T>(rule: Rule<T, T>): (object: KubeObject, old: KubeObject) => StatusCause[] {
  return (object, old) => causesOf(rule, '', object as unknown as T, old as unknown as T)
}

/** Applies the rules in this order. */
export function all<T, C = unknown>(...rules: readonly Rule<T, C>[]): Rule<T, C> {
  return (value, report, context) => {
    for (const rule of rules) rule(value, report, context)
  }
}

/** An object with at least these members, each of which may be absent. */
type Having<T> = { readonly [M in keyof T]?: T[M] | undefined }

/** Applies a rule to each of these members, in this order. */
export function fields<T, C = unknown>(table: { readonly [M in keyof T]?: Rule<T[M], C> }): Rule<Having<T>, C> {
  const rows = rowsOf<T, C>(table)
  return (value, report, context) => {
    for (const { member, rule } of rows) report.at(member, rule, value[member], context)
  }
}

/** As `fields`; the context of each rule is the old value of the member. */
export function changes<T>(table: { readonly [M in keyof T]?: Rule<T[M], T[M]> }): Rule<Having<T>, Having<T>> {
  const rows = rowsOf<T>(table)
  return (value, report, old) => {
    for (const { member, rule } of rows) report.at(member, rule, value[member], old[member])
  }
}

interface Row<T, C> {
  readonly member: keyof T & string
  readonly rule: Rule<unknown, C>
}

/** The rows of a table of rules. They are objects, because destructuring the pairs of Object.entries takes longer. */
export function rowsOf<T, C = unknown>(table: object): readonly Row<T, C>[] {
  const entries = Object.entries(table) as [keyof T & string, Rule<unknown, C>][]
  return entries.map(([member, rule]) => ({ member, rule }))
}

/** Applies the rule at a place with another name, for the paths that upstream spells differently. */
export function at<T, C = unknown>(place: string, rule: Rule<T, C>): Rule<T, C> {
  return (value, report, context) => report.at(place, rule, value, context)
}

/** Applies the rule if there is a value. */
export function optional<T, C = unknown>(rule: Rule<T, C>): Rule<T | Absent, C> {
  return (value, report, context) => {
    if (value !== undefined && value !== null) rule(value, report, context)
  }
}

/** Applies the rule if there is a value that is not empty. */
export function given<T, C = unknown>(rule: Rule<T, C>): Rule<T | Absent, C> {
  return (value, report, context) => {
    if (!isUnset(value)) rule(value as T, report, context)
  }
}

/** Applies the rule to the text; an absent text counts as empty. */
export function orEmpty<C = unknown>(rule: Rule<string, C>): Rule<string | Absent, C> {
  return (text, report, context) => rule(text ?? '', report, context)
}

/** Requires a value that is not empty. */
export function nonEmpty(detail?: string): Rule<unknown> {
  return (value, report) => {
    if (isUnset(value)) report.required('', detail)
  }
}

/** Applies the rule, or reports an error if there is no value or an empty one. */
export function required<T, C = unknown>(rule: Rule<T, C>, detail?: string): Rule<T | Absent, C> {
  return (value, report, context) => {
    if (isUnset(value)) report.required('', detail)
    else rule(value as T, report, context)
  }
}

/** Applies the rule, or reports an error if there is no value. An empty value counts as a value. */
export function present<T, C = unknown>(rule: Rule<T, C>, detail?: string): Rule<T | Absent, C> {
  return (value, report, context) => {
    if (value === undefined || value === null) report.required('', detail)
    else rule(value, report, context)
  }
}

/** Applies the rule if the test returns true. */
export function when<T, C = unknown>(test: (value: T, context: C) => boolean, rule: Rule<T, C>): Rule<T, C> {
  return (value, report, context) => {
    if (test(value, context)) rule(value, report, context)
  }
}

/** Applies the rule to each item of a list. */
export function each<T, C = unknown>(rule: Rule<T, C>): Rule<readonly T[] | Absent, C> {
  return (list, report, context) => report.each(list, rule, context)
}

/** Applies the rule to each key of a map, at the place of the map. */
export function eachKey<C = unknown>(rule: Rule<string, C>): Rule<Readonly<Record<string, unknown>> | Absent, C> {
  return (map, report, context) => {
    for (const key in map) rule(key, report, context)
  }
}

/** Applies the rule to each value of a map, at the place of its key. The key is the context. */
export function eachValue<T>(rule: Rule<T, string>): Rule<Readonly<Record<string, T>> | Absent> {
  return (map, report) => {
    if (map) for (const [key, value] of Object.entries(map)) report.at(`[${key}]`, rule, value, key)
  }
}

/** Reports an item of a list that has the key of an earlier item. `place`: the place of the error in the item. */
export function unique<T extends JsonValue>(): Rule<T>
export function unique<T>(place: string, keyOf: (item: T) => JsonValue): Rule<T>
export function unique<T>(place = '', keyOf = (item: T) => item as JsonValue): Rule<T> {
  const rule: Rule<T> = (item, report) => {
    const key = keyOf(item)
    if (report.isRepeated(rule, key)) report.duplicate(place, key)
  }
  return rule
}

/** Requires at most this many items. */
export function maxItems(max: number): Rule<readonly unknown[] | Absent> {
  return (list, report) => {
    if (list && list.length > max) report.tooMany('', list.length, max)
  }
}

/** Requires at most this many bytes of UTF-8. */
export function maxBytes(max: number): Rule<string | Absent> {
  return (text, report) => {
    if (text && text.length * 3 > max && byteLength(text) > max) report.tooLong('', max)
  }
}

/** Requires one of these words. */
export function oneOf(words: readonly string[]): Rule<string | Absent> {
  return (value, report) => {
    if (value !== undefined && value !== null && !words.includes(value)) report.notSupported('', value, words)
  }
}

/** Requires a value that passes the test; otherwise reports an Invalid error with this detail. */
export function must<T extends JsonValue, C = unknown>(
  test: (value: T, context: C) => boolean,
  detail: string,
): Rule<T | Absent, C> {
  return (value, report, context) => {
    if (value !== undefined && value !== null && !test(value, context)) report.invalid('', value, detail)
  }
}

/** Requires a text of this form. */
export function matches(form: RegExp, detail: string): Rule<string | Absent> {
  return must((text: string) => form.test(text), detail)
}

/** Requires a text for which `errorsOf` finds no errors. */
export function text(errorsOf: (value: string) => readonly string[]): Rule<string> {
  return (value, report) => {
    const errors = errorsOf(value)
    if (errors.length > 0) report.invalidFor('', value, errors)
  }
}

/** Requires a number from `low` to `high`. */
export function between(low: number, high: number): Rule<Int64 | Absent> {
  return must((value: Int64) => value >= low && value <= high, `must be between ${low} and ${high}, inclusive`)
}

/** Requires that there is no value. */
export function forbidden(detail: string): Rule<unknown> {
  return (value, report) => {
    if (value !== undefined && value !== null) report.forbidden('', detail)
  }
}

export const fieldImmutable = 'field is immutable'

/**
 * Requires the old value. `struct`: the internal struct as which the error prints the value; absent: the value is
 * printed as it is.
 */
export function immutable(struct?: string, detail = fieldImmutable): Rule<unknown> {
  return (value, report, old) => {
    if (isDeepStrictEqual(value ?? null, old ?? null)) return
    if (struct === undefined) report.invalid('', (value ?? null) as JsonValue, detail)
    else report.invalidStruct('', struct, value, detail)
  }
}

/** Requires the old value; otherwise reports a Forbidden error with this detail. */
export function unchanged(detail: string): Rule<unknown> {
  return (value, report, old) => {
    if (!isDeepStrictEqual(value ?? null, old ?? null)) report.forbidden('', detail)
  }
}

/** Applies the rules in this order until one of them reports an error. */
export function firstOf<T, C = unknown>(...rules: readonly Rule<T, C>[]): Rule<T, C> {
  return (value, report: Report, context) => {
    const before = report.causes.length
    for (const rule of rules) {
      if (report.causes.length > before) return
      rule(value, report, context)
    }
  }
}
