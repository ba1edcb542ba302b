// Compiles the parts that validating and mutating admission policies have in common.
import type {
  V1MatchCondition,
  V1MatchResources,
  V1ParamKind,
  V1ValidatingAdmissionPolicySpec,
  V1Variable,
} from '@kubernetes/client-node'
import { type CelType, dynType, Program } from '#apimachinery/cel/index.ts'
import {
  anyTypes,
  compileAdmissionExpression,
  conditionTypes,
  type ExpressionFailure,
  type Scope,
  typeOfVariable,
} from '#virtualapi/kinds/admission-expressions/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { compileMatch, type ResourceMatch } from './match-resources.ts'

export interface Expression {
  readonly text: string
  readonly compiled: Program | ExpressionFailure
}

export interface PolicyBase {
  readonly paramKind: Data<V1ParamKind> | undefined
  readonly match: ResourceMatch
  /** failurePolicy Ignore. */
  readonly failsOpen: boolean
  readonly variables: ReadonlyMap<string, Expression>
  readonly conditions: readonly Expression[]
}

interface BaseSpec {
  readonly failurePolicy?: Data<V1ValidatingAdmissionPolicySpec>['failurePolicy']
  readonly paramKind?: Data<V1ParamKind>
  readonly matchConstraints?: Data<V1MatchResources>
  readonly matchConditions?: readonly Data<V1MatchCondition>[]
  readonly variables?: readonly Data<V1Variable>[]
}

/** Compiles an expression of the policy, by default with all variables that its expressions may use. */
export type Compile = (text: string, types: readonly CelType[], scope?: Partial<Scope>) => Expression

export function compileBase(spec: BaseSpec): { readonly base: PolicyBase; readonly compiled: Compile } {
  const { paramKind, matchConditions = [], matchConstraints = {}, failurePolicy } = spec
  const scope = { hasParams: paramKind !== undefined, hasAuthorizer: true, stored: true }
  const { variables, types } = compileVariables(spec, scope)
  const compiled: Compile = (text, kinds, changed = {}) => ({
    text,
    compiled: compileAdmissionExpression(text, kinds, { ...scope, variables: types, ...changed }),
  })
  const base = {
    paramKind,
    match: compileMatch(matchConstraints),
    failsOpen: failurePolicy === 'Ignore',
    variables,
    conditions: matchConditions.map(({ expression }) => compiled(expression, conditionTypes)),
  }
  return { base, compiled }
}

/** Compiles the variables of a policy. Each variable can use the variables before it. */
function compileVariables({ variables: all = [] }: BaseSpec, scope: Scope) {
  const variables = new Map<string, Expression>()
  const types = new Map<string, CelType>()
  for (const { name, expression } of all) {
    const compiled = compileAdmissionExpression(expression, anyTypes, { ...scope, variables: types })
    variables.set(name, { text: expression, compiled })
    types.set(name, compiled instanceof Program ? typeOfVariable(compiled.outputType) : dynType)
  }
  return { variables, types }
}
