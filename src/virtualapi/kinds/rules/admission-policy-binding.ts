// ValidatingAdmissionPolicyBinding: a policy, its parameters, and the actions on a violation.
import type { V1ValidatingAdmissionPolicyBindingSpec } from '@kubernetes/client-node'
import { fieldDuplicate, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { matchResourcesCauses } from '#virtualapi/kinds/validation/match-resources.ts'
import { paramRefCauses } from '#virtualapi/kinds/validation/param-ref.ts'
import { objectName } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1ValidatingAdmissionPolicyBindingSpec>

const actions = ['Audit', 'Deny', 'Warn']

export const admissionPolicyBindingRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Spec
    return [
      ...objectName('spec.policyName', spec.policyName),
      ...paramRefCauses('spec.paramRef', spec.paramRef),
      ...matchResourcesCauses('spec.matchResources', spec.matchResources),
      ...actionCauses('spec.validationActions', spec.validationActions),
    ]
  },
}

function actionCauses(path: string, list: readonly string[] = []): StatusCause[] {
  const seen = new Set<string>()
  const causes: StatusCause[] = []
  for (const [index, action] of list.entries()) {
    const at = `${path}[${index}]`
    if (!actions.includes(action)) causes.push(fieldNotSupported(at, action, actions))
    if (seen.has(action)) causes.push(fieldDuplicate(at, action))
    seen.add(action)
  }
  if (seen.has('Deny') && seen.has('Warn'))
    causes.push(
      fieldInvalid(
        path,
        [...list],
        'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
      ),
    )
  if (list.length === 0) causes.push(fieldRequired(path, 'at least one validation action is required'))
  return causes
}
