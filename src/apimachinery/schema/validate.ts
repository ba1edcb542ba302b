// Validates a value against a schema with the messages of kube-apiserver, in one walk; messages are built only for
// failures. The order of checks at a node is upstream's: type, combinations, string, format, number, list, enum,
// object.
import {
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
  fieldTypeInvalid,
} from '#apimachinery/field/index.ts'
import { goFloat, goJson, goNumber } from '#apimachinery/text/index.ts'
import {
  isExactInteger,
  isJsonNumber,
  isJsonObject,
  type Int64,
  type JsonObject,
  type JsonValue,
} from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { fieldBefore, isUnchanged, itemBefore } from './correlate.ts'
import { formatCheck } from './formats.ts'
import { listCauses } from './list-types.ts'
import { compilePattern } from './pattern.ts'
import { propertyOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'
import { pathText, type ValuePath } from './value-path.ts'

/** Stops after this many failures: the response must not be larger than the request. */
const maxCauses = 500
/** Cost of the check of one value by one node of a schema, in steps of the work budget. */
const checkSteps = 5
const tooLong = 'the object takes too long to be checked against the schema of its kind'

/**
 * The errors in the value; empty if it is valid. Includes uniqueness of lists of type set and map. `old` is the value
 * that it replaces: an error in an unchanged part is not reported. `path` is the path of the value within its object.
 * Throws RequestEntityTooLarge when `work` is spent; alternatives, and expressions on long texts, are charged to it,
 * too.
 */
export function validate(
  value: JsonValue,
  schema: SchemaNode,
  { old, path = [], work = new WorkBudget() }: { old?: JsonValue; path?: ValuePath; work?: WorkBudget } = {},
): StatusCause[] {
  const found = new Findings([...path], work)
  check(value, schema, found, old)
  const lists = old === undefined || listCauses(old, schema).length === 0
  if (lists && found.causes.length < maxCauses) found.causes.push(...listCauses(value, schema))
  return found.causes
}

class Findings {
  readonly causes: StatusCause[] = []
  readonly path: ValuePath
  readonly work: WorkBudget
  /** Number of checks that ran: if all alternatives fail, upstream explains the alternative that got furthest. */
  checks = 0

  constructor(path: ValuePath, work: WorkBudget) {
    this.path = path
    this.work = work
  }
  get name(): string {
    return pathText(this.path)
  }
  invalid(value: JsonValue, why: string): void {
    this.causes.push(fieldInvalid(this.name, value, `${this.name} in body ${why}`))
  }
  /** Adds a failure of a combination, which upstream reports without a field. */
  general(why: string): void {
    this.causes.push(fieldInvalid('', '', `"${this.name}" ${why}`))
  }
}

function check(value: JsonValue, schema: SchemaNode, found: Findings, old?: JsonValue): void {
  const before = found.causes.length
  if (before >= maxCauses) return
  found.checks += 2
  found.work.spend(checkSteps, tooLong)
  checkType(value, schema, found)
  if (value !== null) {
    if (schema.anyOf ?? schema.oneOf ?? schema.allOf ?? schema.not) checkCombinations(value, schema, found)
    if (typeof value === 'string') checkString(value, schema, found)
    else if (isJsonNumber(value)) checkNumber(value, schema, found)
    else if (Array.isArray(value)) checkList(value, schema, found, old)
  }
  if (schema.enum !== undefined) checkEnum(value, schema.enum, found)
  if (isJsonObject(value)) checkObject(value, schema, found, old)
  if (found.causes.length > before && isUnchanged(value, old, schema)) found.causes.length = before
}

function typeOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return isJsonNumber(value) ? (isExactInteger(value) ? 'integer' : 'number') : typeof value
}

function checkType(value: JsonValue, schema: SchemaNode, found: Findings): void {
  const { type, intOrString, format } = schema
  if (type === undefined && intOrString !== true && format === undefined) return
  const actual = typeOf(value)
  if (actual === type || (actual === 'integer' && type === 'number')) return
  if (type === 'integer' && typeof value === 'number' && isJsonInteger(value)) return
  const expected = intOrString === true ? 'integer,string' : (type ?? '')
  if (intOrString === true && (actual === 'integer' || actual === 'string')) return
  if (actual === 'null') {
    if (expected !== '' && schema.nullable !== true) wrongType(expected, 'null', found)
    return
  }
  const check = format === undefined ? undefined : formatCheck(format)
  if (check !== undefined && format !== undefined) {
    if (actual !== 'string' && actual !== 'array') {
      wrongType(format, actual === 'integer' ? 'int64' : actual === 'number' ? 'float64' : '', found)
      return
    }
    if (type !== 'number' && type !== 'integer' && intOrString !== true) return
  }
  if (expected !== '') wrongType(expected, actual, found)
}

function wrongType(expected: string, actual: string, found: Findings): void {
  const { name } = found
  found.causes.push(fieldTypeInvalid(name, actual, `${name} in body must be of type ${expected}: "${actual}"`))
}

function checkCombinations(value: JsonValue, { anyOf, oneOf, allOf, not }: SchemaNode, found: Findings): void {
  if (anyOf !== undefined) {
    const { valid, best } = alternatives(value, anyOf, found)
    if (valid === 0) {
      found.general('must validate at least one schema (anyOf)')
      found.causes.push(...best)
    }
  }
  if (oneOf !== undefined) {
    const { valid, best } = alternatives(value, oneOf, found)
    if (valid !== 1) {
      const how = valid === 0 ? 'Found none valid' : `Found ${String(valid)} valid alternatives`
      found.general(`must validate one and only one schema (oneOf). ${how}`)
      found.causes.push(...best)
    }
  }
  if (allOf !== undefined) {
    const before = found.causes.length
    let valid = 0
    for (const schema of allOf) {
      const own = found.causes.length
      check(value, schema, found)
      if (found.causes.length === own) valid++
    }
    if (found.causes.length > before)
      found.general(`must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`)
  }
  if (not !== undefined && trial(value, not, found).causes.length === 0)
    found.general('must not validate the schema (not)')
}

function trial(value: JsonValue, schema: SchemaNode, found: Findings): Findings {
  const own = new Findings(found.path, found.work)
  check(value, schema, own)
  found.checks += own.checks
  return own
}

function alternatives(
  value: JsonValue,
  schemas: SchemaNode[],
  found: Findings,
): { valid: number; best: StatusCause[] } {
  let valid = 0
  let best: Findings | undefined
  for (const schema of schemas) {
    const own = trial(value, schema, found)
    if (own.causes.length === 0) valid++
    else if (best === undefined || own.checks > best.checks) best = own
  }
  return { valid, best: valid === 0 ? (best?.causes ?? []) : [] }
}

function checkString(value: string, { minLength, maxLength, pattern, format }: SchemaNode, found: Findings): void {
  found.checks++
  // Upstream reports only the first of these failures.
  if (maxLength !== undefined && value.length > maxLength && countRunes(value) > maxLength) {
    found.causes.push(fieldTooLong(found.name, maxLength))
  } else if (minLength !== undefined && countRunes(value) < minLength) {
    found.invalid(value, `should be at least ${String(minLength)} chars long`)
  } else if (pattern !== undefined) {
    const compiled = compilePattern(pattern)
    if ('error' in compiled)
      found.invalid(value, `should match '${pattern}, but pattern is invalid: ${compiled.error}'`)
    else {
      found.work.spend(compiled.size * value.length, tooLong)
      if (!compiled.test(value)) found.invalid(value, `should match '${pattern}'`)
    }
  }
  if (format !== undefined && formatCheck(format)?.(value) === false) {
    found.causes.push(
      fieldTypeInvalid(found.name, value, `${found.name} in body must be of type ${format}: ${JSON.stringify(value)}`),
    )
  }
}

function countRunes(value: string): number {
  let count = value.length
  for (let i = 0; i < value.length; i++) if ((value.charCodeAt(i) & 0xfc00) === 0xd800) count--
  return count
}

function checkNumber(value: Int64, schema: SchemaNode, found: Findings): void {
  found.checks++
  const { multipleOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  // Upstream compares an integer with bounds that it converts to integers; it keeps them as doubles.
  const bound = (given: number): Int64 => (isExactInteger(value) ? asInt64(given) : given)
  if (multipleOf !== undefined) checkMultiple(value, bound(multipleOf), found)
  if (maximum !== undefined) {
    const most = bound(maximum)
    if (exclusiveMaximum === true ? value >= most : value > most)
      found.invalid(
        value,
        `should be less than ${exclusiveMaximum === true ? '' : 'or equal to '}${boundText(value, most)}`,
      )
  }
  if (minimum !== undefined) {
    const least = bound(minimum)
    if (exclusiveMinimum === true ? value <= least : value < least)
      found.invalid(
        value,
        `should be greater than ${exclusiveMinimum === true ? '' : 'or equal to '}${boundText(value, least)}`,
      )
  }
}

function checkMultiple(value: Int64, factor: Int64, found: Findings): void {
  if (factor <= 0) {
    const { name } = found
    const why = `factor MultipleOf declared for ${name} must be positive: ${goNumber(factor)}`
    found.causes.push(fieldInvalid(name, factor, why))
    return
  }
  const isMultiple = isExactInteger(value)
    ? BigInt(value) % BigInt(factor) === 0n
    : isJsonInteger(factor < 1 ? (1 / Number(factor)) * value : value / Number(factor))
  if (!isMultiple) found.invalid(value, `should be a multiple of ${boundText(value, factor)}`)
}

function boundText(value: Int64, bound: Int64): string {
  return isExactInteger(value) ? goNumber(bound) : goFloat(bound)
}

/** Go's conversion of a double to int64 on amd64: without its fraction, and the lowest int64 for all beyond 64 bits. */
function asInt64(value: number): Int64 {
  if (Number.isSafeInteger(value)) return value
  const whole = BigInt(Math.trunc(value))
  return BigInt.asIntN(64, whole) === whole ? exactInteger(whole) : lowestInt64
}

const lowestInt64 = -(2n ** 63n)
const exactInteger = (value: bigint): Int64 => (Number.isSafeInteger(Number(value)) ? Number(value) : value)

/**
 * True for a double that upstream takes for an integer: a double within 2^53 that is whole, up to a relative error of
 * 1e-9.
 */
function isJsonInteger(value: number): boolean {
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return false
  const whole = Math.trunc(value)
  return value === whole || (value > 0 && Math.abs(value - whole) / (value + whole) < 1e-9)
}

function checkList(list: JsonValue[], schema: SchemaNode, found: Findings, old: JsonValue | undefined): void {
  const { items, minItems, maxItems, uniqueItems } = schema
  found.checks++
  if (items !== undefined) {
    for (let i = 0; i < list.length; i++) {
      found.path.push(i)
      check(list[i] ?? null, items, found, itemBefore(list[i], old, schema))
      found.path.pop()
    }
  }
  if (minItems !== undefined && list.length < minItems) {
    found.invalid(list.length, `should have at least ${String(minItems)} items`)
  }
  if (maxItems !== undefined && list.length > maxItems) {
    found.causes.push(fieldTooMany(found.name, list.length, maxItems))
  }
  if (uniqueItems === true && new Set(list.map(goJson)).size < list.length) {
    found.invalid('', "shouldn't contain duplicates")
  }
}

function checkEnum(value: JsonValue, allowed: JsonValue[], found: Findings): void {
  found.checks++
  if (
    typeof value === 'object' && value !== null
      ? optionsOf(allowed).texts().has(goJson(value))
      : optionsOf(allowed).values.has(value) || (isJsonNumber(value) && hasNumber(allowed, value))
  )
    return
  found.work.spend(checkSteps * allowed.length, tooLong)
  found.causes.push(
    fieldNotSupported(
      found.name,
      value ?? '',
      allowed.map((option) => (typeof option === 'string' ? option : goJson(option))),
    ),
  )
}

/** Whether a number beyond 2^53 is among the options, as a double or as an integer. */
function hasNumber(allowed: JsonValue[], value: Int64): boolean {
  if (Number.isSafeInteger(value)) return false
  // Uses `==`, which compares a bigint and a double by their values.
  return allowed.some((option) => isJsonNumber(option) && option == value)
}

interface Options {
  readonly values: ReadonlySet<JsonValue>
  /** All options as JSON, for the rare options that are objects or arrays. */
  readonly texts: () => ReadonlySet<string>
}

const optionsByEnum = new WeakMap<JsonValue[], Options>()

/** The options of an enum, indexed so that a lookup does not depend on their number. */
function optionsOf(allowed: JsonValue[]): Options {
  let options = optionsByEnum.get(allowed)
  if (options === undefined) {
    let texts: ReadonlySet<string> | undefined
    options = { values: new Set(allowed), texts: () => (texts ??= new Set(allowed.map((option) => goJson(option)))) }
    optionsByEnum.set(allowed, options)
  }
  return options
}

function checkObject(object: JsonObject, schema: SchemaNode, found: Findings, old: JsonValue | undefined): void {
  found.checks++
  const { minProperties, maxProperties, required, additionalProperties, properties } = schema
  if (minProperties !== undefined || maxProperties !== undefined) {
    const count = Object.keys(object).length
    if (minProperties !== undefined && count < minProperties) {
      found.invalid(count, `should have at least ${String(minProperties)} properties`)
    }
    if (maxProperties !== undefined && count > maxProperties)
      found.causes.push(fieldTooMany(found.name, count, maxProperties))
  }
  if (properties !== undefined || additionalProperties !== undefined) {
    for (const key in object) {
      const property = propertyOf(schema, key)
      const field = property ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
      if (field !== undefined) {
        found.path.push(key)
        check(object[key] ?? null, field, found, fieldBefore(old, key))
        found.path.pop()
      } else if (additionalProperties === false) {
        const { name } = found
        found.causes.push(fieldInvalid(name, key, `${name}.${key} in body is a forbidden property`))
      }
    }
  }
  if (required !== undefined) {
    for (const key of required) {
      if (!Object.hasOwn(object, key)) found.causes.push(fieldRequired(pathText(found.path, key)))
    }
  }
}
