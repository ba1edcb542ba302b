// Compiles a MutatingAdmissionPolicy. Logical clusters with equal policies share the compiled form.
import type { V1beta1MutatingAdmissionPolicySpec } from '@kubernetes/client-node'
import { LRUCache } from 'lru-cache'
import { applyConfigurationTypes, jsonPatchTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { compileBase, type Compile, type Expression, type PolicyBase } from './compile-base.ts'

type Spec = Data<V1beta1MutatingAdmissionPolicySpec>

export interface Mutation {
  readonly type: 'ApplyConfiguration' | 'JSONPatch'
  readonly expression: Expression
}

export interface CompiledMutatingPolicy extends PolicyBase {
  /** reinvocationPolicy IfNeeded. */
  readonly reinvokes: boolean
  readonly mutations: readonly Mutation[]
}

const cache = new LRUCache<string, CompiledMutatingPolicy>({ max: 5000, maxSize: 4 * 1024 * 1024 })

/** The compiled form of a valid policy. Equal policies share the same object while it is in the cache. */
export function compileMutatingPolicy(spec: Spec): CompiledMutatingPolicy {
  const key = JSON.stringify(spec)
  let policy = cache.get(key)
  if (policy === undefined) {
    const { base, compiled } = compileBase(spec)
    const mutations = (spec.mutations ?? []).map((mutation) => compileMutation(mutation, compiled))
    policy = { ...base, reinvokes: spec.reinvocationPolicy === 'IfNeeded', mutations }
    cache.set(key, policy, { size: key.length })
  }
  return policy
}

function compileMutation(
  { patchType, applyConfiguration, jsonPatch }: NonNullable<Spec['mutations']>[number],
  compiled: Compile,
): Mutation {
  const scope = { hasPatchTypes: true }
  return patchType === 'JSONPatch'
    ? { type: 'JSONPatch', expression: compiled(jsonPatch?.expression ?? '', jsonPatchTypes, scope) }
    : {
        type: 'ApplyConfiguration',
        expression: compiled(applyConfiguration?.expression ?? '', applyConfigurationTypes, scope),
      }
}
