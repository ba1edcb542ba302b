// Compiles the validation rules of one node of a schema. Nodes are shared by all logical clusters with an equal schema,
// and so are their programs.
import {
  boolType,
  type CelType,
  type CompileFailure,
  compileExpression,
  type DeclaredType,
  declaredType,
  type Environment,
  extendEnvironment,
  kubernetesEnvironment,
  maxCardinality,
  optionalOf,
  Program,
  stringType,
} from '#apimachinery/cel/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { ruleFieldPath } from './rule-field-path.ts'
import { type ValidationRule, validationRule } from './validation-rule.ts'

/** The libraries that new expressions may use: the libraries that a server of the previous version also has. */
const newExpressions = { minor: 33 }

/** A compiled expression: a program, or the reason why there is none. */
export interface CompiledExpression {
  readonly program?: Program
  /** The error if the expression does not compile. */
  readonly failure?: string
  /** The error if the expression does not compile in a definition that does not have it yet. */
  readonly newFailure?: string
  /** Maximum cost of a run, in cost units. */
  readonly maxCost: bigint
}

export interface CompiledRule {
  readonly rule: ValidationRule
  /** The compiled rule; undefined if its text is empty. */
  readonly condition: CompiledExpression | undefined
  readonly messageExpression: CompiledExpression | undefined
  readonly usesOldSelf: boolean
  /** The field to which failures are attributed, relative to the value of the rule. */
  readonly fieldPath: string
}

/** The schema and the types of the value to which the rules of a node apply. */
export interface RuleScope {
  /** The schema of the value that is `self` in rules. */
  readonly node: SchemaNode
  readonly isResource: boolean
  /** The type of self. */
  readonly self: DeclaredType
  /** The type that contains all types of fields of self. */
  readonly root: DeclaredType
}

const compiled = new WeakMap<SchemaNode, readonly CompiledRule[]>()

/** The compiled rules of a node, which may be an alternative (allOf) of the node of the value. */
export function compileRules(schema: SchemaNode, scope: RuleScope): readonly CompiledRule[] {
  let rules = compiled.get(schema)
  if (rules === undefined) {
    rules = (schema.validations ?? []).map((value) => compileRule(validationRule(value), scope))
    compiled.set(schema, rules)
  }
  return rules
}

/** The most times that the rules of a node can run for one object. */
export const runsOf = ({ self }: RuleScope): bigint => BigInt(maxCardinality(self))

function compileRule(rule: ValidationRule, scope: RuleScope): CompiledRule {
  const empty = rule.rule.trim() === ''
  const condition = empty ? undefined : compile(rule.rule, rule, scope, conditionWords)
  const hasMessage = rule.messageExpression !== '' && condition?.program !== undefined
  const fieldPath = rule.fieldPath === '' ? undefined : ruleFieldPath(rule.fieldPath, scope.node)
  return {
    rule,
    condition,
    messageExpression: hasMessage ? compile(rule.messageExpression, rule, scope, messageWords) : undefined,
    usesOldSelf: condition?.program?.uses('oldSelf') ?? false,
    fieldPath: fieldPath ?? '',
  }
}

interface Words {
  readonly type: CelType
  readonly wrongType: string
  readonly compile: string
  readonly program: string
}
const conditionWords: Words = {
  type: boolType,
  wrongType: 'cel expression must evaluate to a bool',
  compile: 'compilation failed: ',
  program: 'program instantiation failed: ',
}
const messageWords: Words = {
  type: stringType,
  wrongType: 'messageExpression must evaluate to a string',
  compile: 'messageExpression compilation failed: ',
  program: 'messageExpression instantiation failed: ',
}

function compile(text: string, rule: ValidationRule, scope: RuleScope, words: Words): CompiledExpression {
  const environment = (base: Environment, self: DeclaredType, root: DeclaredType): Environment =>
    extendEnvironment(base, {
      variables: { self: self.type, oldSelf: rule.optionalOldSelf === true ? optionalOf(self.type) : self.type },
      declaredTypes: [root],
    })
  const attempt = (base: Environment): Program | string => {
    const first = compileExpression(text, environment(base, scope.self, scope.root))
    const { outputType } = first
    if (outputType !== undefined && outputType.kind !== words.type.kind) return words.wrongType
    if (first instanceof Program) return first
    // Compiles again with the type under the name that messages show.
    const named = declaredType(scope.node, 'selfType', { isResource: scope.isResource })
    const again = named === undefined ? first : compileExpression(text, environment(base, named, named))
    return failureText(again instanceof Program ? first : again, words)
  }
  const program = attempt(kubernetesEnvironment(newExpressions))
  if (program instanceof Program) return { program, maxCost: program.estimate(scope.self).max }
  const stored = attempt(kubernetesEnvironment())
  return stored instanceof Program
    ? { program: stored, newFailure: program, maxCost: stored.estimate(scope.self).max }
    : { failure: stored, newFailure: program, maxCost: 0n }
}

const failureText = ({ stage, message }: CompileFailure, words: Words): string => words[stage] + message
