// MutatingAdmissionPolicyBinding: a policy and its parameters.
import type { V1beta1MutatingAdmissionPolicyBindingSpec } from '@kubernetes/client-node'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { matchResourcesCauses } from '#virtualapi/kinds/validation/match-resources.ts'
import { paramRefCauses } from '#virtualapi/kinds/validation/param-ref.ts'
import { objectName } from '#virtualapi/kinds/validation/values.ts'
import { mutableOperationCauses } from './mutating-admission-policy.ts'

export const mutatingAdmissionPolicyBindingRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Data<V1beta1MutatingAdmissionPolicyBindingSpec>
    return [
      ...objectName('spec.policyName', spec.policyName),
      ...paramRefCauses('spec.paramRef', spec.paramRef),
      ...matchResourcesCauses('spec.matchResources', spec.matchResources),
      ...mutableOperationCauses('spec.matchResources', spec.matchResources),
    ]
  },
}
