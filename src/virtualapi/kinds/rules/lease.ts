// Leases: used for leader election and node heartbeats.
import type { V1LeaseSpec } from '@kubernetes/client-node'
import { fieldInvalid } from '../../../apimachinery/field/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '../../resources/typed/data.ts'
import { nonNegative } from '../validation/values.ts'
import { dropFromSpec } from './drop-from-spec.ts'

export const leaseRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['strategy', 'preferredHolder']),
  validate(object) {
    const { leaseDurationSeconds, leaseTransitions } = object['spec'] as Data<V1LeaseSpec>
    return [
      ...(leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0
        ? [fieldInvalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
        : []),
      ...nonNegative('spec.leaseTransitions', leaseTransitions),
    ]
  },
}
