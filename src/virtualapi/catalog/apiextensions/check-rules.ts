// Checks the expressions of validation rules when a definition is written: they must compile, and their cost for the
// largest object that the schema allows must stay below the limits.
import { type DeclaredType, declaredType, escapeFieldName } from '#apimachinery/cel/index.ts'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import { fieldOf, isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { goJson } from '#apimachinery/text/index.ts'
import { type CompiledExpression, type CompiledRule, compileRules, runsOf } from './compile-rules.ts'
import { hasRules } from './rule-tree.ts'
import type { ValidationRule } from './validation-rule.ts'

/** The limits of the cost of one expression, and of all expressions of a schema, in cost units. */
const expressionLimit = 10_000_000n
const schemaLimit = 100_000_000n
const maxUint64 = 0xffff_ffff_ffff_ffffn
const maxNamedExpressions = 4

/** The rules that an update may keep although a new definition may not have them. */
export interface KeptRules {
  readonly rules: ReadonlySet<string>
  readonly messageExpressions: ReadonlySet<string>
  /** True if the schema of the version did not change: then the limit of one expression does not apply. */
  readonly unchanged: boolean
}

export interface CheckedSchema {
  /** The schema as the client sent it. `node` is the same schema, parsed. */
  readonly source: JsonObject
  readonly node: SchemaNode
  readonly path: string
  /** The nodes that have no other errors, neither in themselves nor below. Rules of other nodes are not checked. */
  readonly sound: ReadonlySet<JsonObject>
  readonly kept: KeptRules
}

/** Errors in the expressions of the rules of a schema. */
export function checkRuleExpressions(schema: CheckedSchema): StatusCause[] {
  const { source, node, path } = schema
  if (!hasRules(node)) return []
  const self = declaredType(node, 'selfType', { isResource: true })
  const check = new RuleCheck(schema)
  check.visit(source, node, { path, self, root: self, runs: 1n, isRoot: true, uncorrelated: undefined })
  return [...check.causes, ...check.totalCauses(path)]
}

interface Place {
  readonly path: string
  readonly self: DeclaredType | undefined
  readonly root: DeclaredType | undefined
  /** The most values of this node that an object can have; undefined if the schema does not bound the number. */
  readonly runs: bigint | undefined
  readonly isRoot: boolean
  /** The path of the closest list above whose old and new items cannot be matched; undefined if there is none. */
  readonly uncorrelated: string | undefined
}

class RuleCheck {
  readonly causes: StatusCause[] = []
  readonly #schema: CheckedSchema
  #total = 0n
  #expensive: { path: string; cost: bigint }[] = []

  constructor(schema: CheckedSchema) {
    this.#schema = schema
  }

  visit(source: JsonObject, node: SchemaNode, place: Place): void {
    if (!hasRules(node)) return
    const { path, uncorrelated, self, root } = place
    const child = (name: string, of: SchemaNode, below: Partial<Place>): void => {
      const found = fieldOf(source, name)
      const all = { ...place, ...below, isRoot: false, path: `${path}.${name}`, runs: runsBelow(source, place.runs) }
      if (isJsonObject(found)) this.visit(found, of, all)
    }
    const { additionalProperties, items, properties = {} } = node
    if (typeof additionalProperties === 'object')
      child('additionalProperties', additionalProperties, { self: self?.element })
    const sources = fieldOf(source, 'properties')
    for (const [name, property] of Object.entries(properties)) {
      const found = isJsonObject(sources) ? fieldOf(sources, name) : undefined
      if (!isJsonObject(found)) continue
      const known = self?.fields?.get(escapeFieldName(name) ?? '')
      const type = known ?? declaredType(property, 'selfType', { isResource: property.embeddedResource === true })
      this.visit(found, property, {
        path: `${path}.properties[${name}]`,
        self: type,
        root: known === undefined ? type : root,
        runs: runsBelow(source, place.runs),
        isRoot: false,
        uncorrelated,
      })
    }
    if (items !== undefined) {
      const unmatched = node.listType === 'map' ? undefined : path
      child('items', items, { self: self?.element, uncorrelated: uncorrelated ?? unmatched })
    }
    if (node.validations !== undefined && this.#schema.sound.has(source)) this.#rules(node, place)
  }

  #rules(node: SchemaNode, place: Place): void {
    const { self, root } = place
    const at = `${place.path}.x-kubernetes-validations`
    if (self === undefined || root === undefined) {
      const what = 'failed to construct type information for x-kubernetes-validations rules'
      const why = 'unable to convert structural schema to CEL declarations'
      const message = `Internal error: internal error: ${what}: ${why}`
      this.causes.push({ reason: 'InternalError', message, field: at })
      return
    }
    const scope = { node, isResource: place.isRoot || node.embeddedResource === true, self, root }
    const runs = place.runs ?? runsOf(scope)
    for (const [i, compiled] of compileRules(node, scope).entries())
      this.#rule(compiled, `${at}[${String(i)}]`, place, runs)
  }

  #rule(compiled: CompiledRule, at: string, { uncorrelated }: Place, runs: bigint): void {
    const { rule, condition, messageExpression } = compiled
    const { kept } = this.#schema
    const failure = failureOf(condition, kept.rules.has(rule.rule))
    const failed = failure !== undefined
    const cost = failed ? 0n : capped((condition?.maxCost ?? 0n) * runs)
    this.#charge(`${at}.rule`, cost, 'estimated rule cost')
    if (failed) this.causes.push(invalidRule(`${at}.rule`, rule, failure))
    const message = failed ? undefined : messageExpression
    const wrong = failureOf(message, kept.messageExpressions.has(rule.messageExpression))
    if (wrong !== undefined) this.causes.push(invalidRule(`${at}.messageExpression`, rule, wrong))
    else if (message !== undefined)
      this.#charge(`${at}.messageExpression`, message.maxCost, 'estimated messageExpression cost')
    if (compiled.usesOldSelf && !failed) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated ?? ''}`
      if (uncorrelated !== undefined) this.causes.push(fieldInvalid(`${at}.rule`, rule.rule, why))
    } else if (rule.optionalOldSelf !== undefined) {
      const why = 'may not be set if oldSelf is not used in rule'
      this.causes.push(fieldInvalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, why))
    }
  }

  #charge(path: string, cost: bigint, name: string): void {
    if (!this.#schema.kept.unchanged && cost > expressionLimit)
      this.causes.push(fieldForbidden(path, overBudget(name, cost, expressionLimit)))
    this.#total = capped(this.#total + cost)
    if (cost < schemaLimit / 100n) return
    this.#expensive.push({ path, cost })
    this.#expensive = this.#expensive.sort((a, b) => (a.cost > b.cost ? -1 : a.cost < b.cost ? 1 : 0))
    this.#expensive.length = Math.min(this.#expensive.length, maxNamedExpressions)
  }

  /** The errors about the cost of all expressions together. */
  totalCauses(path: string): StatusCause[] {
    if (this.#total <= schemaLimit) return []
    const why = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'
    const name = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema'
    return [
      ...this.#expensive.map((one) => fieldForbidden(one.path, why)),
      fieldForbidden(path, overBudget(name, this.#total, schemaLimit)),
    ]
  }
}

const capped = (cost: bigint): bigint => (cost > maxUint64 ? maxUint64 : cost)

const failureOf = (expression: CompiledExpression | undefined, isKept: boolean): string | undefined =>
  isKept ? expression?.failure : expression?.newFailure

function runsBelow(source: JsonObject, runs: bigint | undefined): bigint | undefined {
  const limit = (name: string): bigint | undefined => {
    const value = fieldOf(source, name)
    if (typeof value === 'bigint') return value < 0n ? 0n : value
    return typeof value === 'number' ? BigInt(Math.max(0, Math.trunc(value))) : undefined
  }
  const type = fieldOf(source, 'type')
  const isMap = type === 'object' && (fieldOf(source, 'additionalProperties') ?? null) !== null
  const times = isMap ? limit('maxProperties') : type === 'array' ? limit('maxItems') : 1n
  return runs === undefined || times === undefined ? undefined : capped(runs * times)
}

/** An Invalid error with the rule as upstream prints its internal type. */
function invalidRule(path: string, rule: ValidationRule, why: string): StatusCause {
  const members = [
    ['Rule', rule.rule],
    ['Message', rule.message],
    ['MessageExpression', rule.messageExpression],
    ['Reason', rule.reason ?? null],
    ['FieldPath', rule.fieldPath],
    ['OptionalOldSelf', rule.optionalOldSelf ?? null],
  ] as const
  const value = `{${members.map(([name, member]) => `"${name}":${goJson(member)}`).join(',')}}`
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${value}: ${why}`, field: path }
}

function overBudget(name: string, cost: bigint, limit: bigint): string {
  const times = Number(cost) / Number(limit)
  const factor = times > 100 ? 'more than 100x' : times < 1.5 ? `${times.toFixed(6)}x` : `${times.toFixed(1)}x`
  const hint =
    'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings'
  return `${name} exceeds budget by factor of ${factor} (${hint} are declared)`
}
