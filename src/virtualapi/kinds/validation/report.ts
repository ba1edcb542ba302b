// The errors of one object, and the place under validation. A path becomes text only in an error.
import {
  childPath,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotFound,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
} from '#apimachinery/field/index.ts'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'

/** Reports the validation errors of a value. `context`: facts from outside the value, such as the stored object. */
export type Rule<T, C = unknown> = (value: T, report: Report, context: C) => void

/**
 * A place relative to another: an index, a member or a key in brackets; empty for the same place, `..` for the place
 * above, `../x` for a member of the place above. Several steps in one text, such as `a.b` and `[key].c`, count as one.
 */
type Step = string | number

function joined(path: string, step: Step): string {
  if (typeof step === 'number') return `${path}[${step}]`
  return step.startsWith('[') ? path + step : childPath(path, step)
}

/** Collects errors. The methods that are named after an error add that error. */
export class Report {
  readonly causes: StatusCause[] = []
  readonly #root: string
  readonly #steps: Step[] = []
  /** The number of items of the innermost list, and the keys that each rule has met in this list. */
  #listLength = 0
  #met: Map<object, Set<unknown>> | undefined

  constructor(root = '') {
    this.#root = root
  }

  /** The path of a place as text. */
  path(at: Step = ''): string {
    const parts: Step[] = []
    for (let step of [...this.#steps, at]) {
      for (; typeof step === 'string' && step.startsWith('..'); step = step.slice(3)) parts.pop()
      if (step !== '') parts.push(step)
    }
    return parts.reduce<string>(joined, this.#root)
  }

  /** Applies a rule to a value at the same place. */
  check<T>(rule: Rule<T>, value: T): void
  check<T, C>(rule: Rule<T, C>, value: T, context: C): void
  check<T, C>(rule: Rule<T, C | undefined>, value: T, context?: C): void {
    rule(value, this, context)
  }

  /** Applies a rule to a value at a place below. */
  at<T>(step: Step, rule: Rule<T>, value: T): void
  at<T, C>(step: Step, rule: Rule<T, C>, value: T, context: C): void
  at<T, C>(step: Step, rule: Rule<T, C | undefined>, value: T, context?: C): void {
    this.#steps.push(step)
    rule(value, this, context)
    this.#steps.pop()
  }

  /** Applies a rule to each item of a list. */
  each<T>(list: readonly T[] | null | undefined, rule: Rule<T>): void
  each<T, C>(list: readonly T[] | null | undefined, rule: Rule<T, C>, context: C): void
  each<T, C>(list: readonly T[] | null | undefined, rule: Rule<T, C | undefined>, context?: C): void {
    if (!list?.length) return
    const [listLength, met, steps] = [this.#listLength, this.#met, this.#steps]
    this.#listLength = list.length
    this.#met = undefined
    const depth = steps.length
    let index = 0
    for (const item of list) {
      steps[depth] = index++
      rule(item, this, context)
    }
    steps.length = depth
    this.#listLength = listLength
    this.#met = met
  }

  /** True if `by` was called with the same key before, for another item of the innermost list. */
  isRepeated(by: object, key: unknown): boolean {
    if (this.#listLength === 1) return false
    this.#met ??= new Map()
    let keys = this.#met.get(by)
    if (keys === undefined) this.#met.set(by, (keys = new Set()))
    if (keys.has(key)) return true
    keys.add(key)
    return false
  }

  invalid(at: Step, value: JsonValue, detail: string): void {
    this.add(fieldInvalid(this.path(at), value, detail))
  }
  /** Adds an Invalid error for each of these texts. */
  invalidFor(at: Step, value: JsonValue, details: readonly string[]): void {
    for (const detail of details) this.invalid(at, value, detail)
  }
  /** Adds an Invalid error that prints the value as the internal struct of this name. */
  invalidStruct(at: Step, struct: string, value: unknown, detail: string): void {
    this.add(invalidInternal(this.path(at), struct, value, detail))
  }
  /** Adds an Invalid error that prints the text `shown` as the value; if it is empty, the error prints no value. */
  invalidText(at: Step, shown: string, detail: string): void {
    const message = `Invalid value: ${shown === '' ? '' : `${shown}: `}${detail}`
    this.add({ reason: 'FieldValueInvalid', message, field: this.path(at) })
  }
  required(at: Step, detail?: string): void {
    this.add(fieldRequired(this.path(at), detail))
  }
  forbidden(at: Step, detail: string): void {
    this.add(fieldForbidden(this.path(at), detail))
  }
  duplicate(at: Step, value: JsonValue): void {
    this.add(fieldDuplicate(this.path(at), value))
  }
  notFound(at: Step, value: JsonValue): void {
    this.add(fieldNotFound(this.path(at), value))
  }
  notSupported(at: Step, value: JsonValue, supported: readonly string[]): void {
    this.add(fieldNotSupported(this.path(at), value, supported))
  }
  tooLong(at: Step, maxBytes: number): void {
    this.add(fieldTooLong(this.path(at), maxBytes))
  }
  tooMany(at: Step, actual: number, max: number): void {
    this.add(fieldTooMany(this.path(at), actual, max))
  }
  add(...causes: readonly StatusCause[]): void {
    for (const cause of causes) this.causes.push(cause)
  }
}

/** The errors of a value at `path`. */
export function causesOf<T>(rule: Rule<T>, path: string, value: T): StatusCause[]
export function causesOf<T, C>(rule: Rule<T, C>, path: string, value: T, context: C): StatusCause[]
export function causesOf<T, C>(rule: Rule<T, C | undefined>, path: string, value: T, context?: C): StatusCause[] {
  const report = new Report(path)
  rule(value, report, context)
  return report.causes
}
