// PodDisruptionBudgets and PriorityClasses.
import type { V1PodDisruptionBudgetSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelSelectorCauses } from '#virtualapi/kinds/validation/label-selector.ts'
import { atMostAll, intOrPercent, invalidStruct, oneOf } from '#virtualapi/kinds/validation/values.ts'

export const podDisruptionBudgetRules: KindRules = {
  validate(object) {
    const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = object[
      'spec'
    ] as Data<V1PodDisruptionBudgetSpec>
    const causes: StatusCause[] = []
    if (minAvailable !== undefined && maxUnavailable !== undefined)
      causes.push(
        invalidStruct(
          'spec',
          {
            MinAvailable: minAvailable,
            Selector: selector ?? null,
            MaxUnavailable: maxUnavailable,
            UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
          },
          'minAvailable and maxUnavailable cannot be both set',
        ),
      )
    return [
      ...causes,
      ...intOrPercent('spec.minAvailable', minAvailable),
      ...atMostAll('spec.minAvailable', minAvailable),
      ...intOrPercent('spec.maxUnavailable', maxUnavailable),
      ...atMostAll('spec.maxUnavailable', maxUnavailable),
      ...labelSelectorCauses('spec.selector', selector),
      ...oneOf('spec.unhealthyPodEvictionPolicy', unhealthyPodEvictionPolicy, ['AlwaysAllow', 'IfHealthyBudget']),
    ]
  },
}

const systemPriorities: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
}
const highestUserPriority = 1_000_000_000

export const priorityClassRules: KindRules = {
  // The generation stays 1.
  countsChange: () => false,
  validate(object, old) {
    const { name = '' } = object.metadata
    const value = object['value'] as number
    const causes: StatusCause[] = []
    if (name.startsWith('system-')) {
      if (systemPriorities[name] !== value)
        causes.push(
          fieldForbidden(
            'metadata.name',
            `priority class names with 'system-' prefix are reserved for system use only. error: ${
              name in systemPriorities
                ? `value of ${name} PriorityClass must be ${systemPriorities[name] ?? 0}`
                : `${name} is not a known system priority class`
            }`,
          ),
        )
    } else if (value > highestUserPriority)
      causes.push(fieldForbidden('value', `maximum allowed value of a user defined priority is ${highestUserPriority}`))
    const policy = object['preemptionPolicy'] as string | undefined
    // On update the field is immutable, which validateChange checks.
    return old === undefined
      ? [...causes, ...oneOf('preemptionPolicy', policy, ['PreemptLowerPriority', 'Never'])]
      : causes
  },
  validateChange(object, old) {
    const causes: StatusCause[] = []
    if (object['value'] !== old['value']) causes.push(fieldForbidden('value', 'may not be changed in an update.'))
    const policy = object['preemptionPolicy'] as string | undefined
    if (policy !== old['preemptionPolicy'])
      causes.push(fieldInvalid('preemptionPolicy', policy ?? null, 'field is immutable'))
    return causes
  },
}
