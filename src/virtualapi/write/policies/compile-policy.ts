// Compiles a ValidatingAdmissionPolicy. Logical clusters with equal policies share the compiled form.
import type { V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import { LRUCache } from 'lru-cache'
import { annotationTypes, conditionTypes, messageTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { compileBase, type Expression, type PolicyBase } from './compile-base.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>

export interface CompiledPolicy extends PolicyBase {
  readonly spec: Spec
  readonly validations: readonly Expression[]
  /** The messageExpressions by index of the validation; undefined for a validation without one. */
  readonly messages: readonly (Expression | undefined)[]
  readonly annotations: readonly Expression[]
}

// The size of an entry is the length of its source, which may be a megabyte for one policy. The compiled form takes
// about 120 bytes for each character of the source.
const cache = new LRUCache<string, CompiledPolicy>({ max: 5000, maxSize: 4 * 1024 * 1024 })

/** The compiled form of a valid policy. Equal policies share the same object while it is in the cache. */
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
  const { validations = [], auditAnnotations = [] } = spec
  const { base, compiled } = compileBase(spec)
  return {
    ...base,
    spec,
    validations: validations.map(({ expression }) => compiled(expression, conditionTypes)),
    messages: validations.map(({ messageExpression = '' }) =>
      messageExpression === '' ? undefined : compiled(messageExpression, messageTypes, { hasAuthorizer: false }),
    ),
    annotations: auditAnnotations.map(({ valueExpression }) => compiled(valueExpression.trim(), annotationTypes)),
  }
}
