// Compiles a ValidatingAdmissionPolicy. Logical clusters with equal policies share the compiled form.
import type { V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import { LRUCache } from 'lru-cache'
import { type CelType, dynType, Program } from '../../apimachinery/cel/index.ts'
import {
  annotationTypes,
  anyTypes,
  compileAdmissionExpression,
  conditionTypes,
  type ExpressionFailure,
  messageTypes,
  type Scope,
  typeOfVariable,
} from '../kinds/admission-expressions/index.ts'
import type { Data } from '../resources/typed/data.ts'
import { compileMatch, type ResourceMatch } from './match-resources.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>

export interface Expression {
  readonly text: string
  readonly compiled: Program | ExpressionFailure
}

export interface CompiledPolicy {
  readonly spec: Spec
  readonly match: ResourceMatch
  /** failurePolicy Ignore. */
  readonly failsOpen: boolean
  readonly variables: ReadonlyMap<string, Expression>
  readonly conditions: readonly Expression[]
  readonly validations: readonly Expression[]
  /** Undefined where a validation has none. */
  readonly messages: readonly (Expression | undefined)[]
  readonly annotations: readonly Expression[]
}

// Weighed by the length of the source, of which a policy may have a megabyte.
const cache = new LRUCache<string, CompiledPolicy>({ max: 5000, maxSize: 16 * 1024 * 1024 })

/** The compiled form of a valid policy. Equal policies give the same object while it is in the cache. */
export function compilePolicy(spec: Spec): CompiledPolicy {
  const key = JSON.stringify(spec)
  let policy = cache.get(key)
  if (policy === undefined) {
    policy = compile(spec)
    cache.set(key, policy, { size: key.length })
  }
  return policy
}

function compile(spec: Spec): CompiledPolicy {
  const { paramKind, validations = [], matchConditions = [], auditAnnotations = [] } = spec
  const scope = { hasParams: paramKind !== undefined, hasAuthorizer: true, stored: true }
  const { variables, types } = compileVariables(spec, scope)
  const within = { ...scope, variables: types }
  const compiled = (text: string, kinds: readonly CelType[], use: Scope = within): Expression => ({
    text,
    compiled: compileAdmissionExpression(text, kinds, use),
  })
  return {
    spec,
    match: compileMatch(spec.matchConstraints ?? {}),
    failsOpen: spec.failurePolicy === 'Ignore',
    variables,
    conditions: matchConditions.map(({ expression }) => compiled(expression, conditionTypes)),
    validations: validations.map(({ expression }) => compiled(expression, conditionTypes)),
    messages: validations.map(({ messageExpression = '' }) =>
      messageExpression === ''
        ? undefined
        : compiled(messageExpression, messageTypes, { ...within, hasAuthorizer: false }),
    ),
    annotations: auditAnnotations.map(({ valueExpression }) => compiled(valueExpression.trim(), annotationTypes)),
  }
}

/** A variable sees those before it. */
function compileVariables({ variables: all = [] }: Spec, scope: Scope) {
  const variables = new Map<string, Expression>()
  const types: Record<string, CelType> = {}
  for (const { name, expression } of all) {
    const compiled = compileAdmissionExpression(expression, anyTypes, { ...scope, variables: { ...types } })
    variables.set(name, { text: expression, compiled })
    types[name] = compiled instanceof Program ? typeOfVariable(compiled.outputType) : dynType
  }
  return { variables, types }
}
