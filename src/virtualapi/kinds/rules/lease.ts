// Leases: used for leader election and node heartbeats.
import { isDeepStrictEqual } from 'node:util'
import type { V1LeaseSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { fields, must, validatingSpec } from '#virtualapi/kinds/validation/vocabulary.ts'
import { dropFromSpec } from './drop-from-spec.ts'

export const leaseRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['strategy', 'preferredHolder']),
  validate: validatingSpec(
    fields<Data<V1LeaseSpec>>({
      leaseDurationSeconds: must((seconds: number) => seconds > 0, 'must be greater than 0'),
      leaseTransitions: nonNegative,
    }),
  ),
  isRenewal(next, old) {
    const { holderIdentity, renewTime } = specOf(next)
    if (!holderIdentity || !renewTime) return false
    return isDeepStrictEqual(withoutRenewal(next), withoutRenewal(old))
  },
}

/** Without what every renewal changes: the time, and when its manager last wrote. */
function withoutRenewal(lease: KubeObject): object {
  const { renewTime: _, ...spec } = specOf(lease)
  const { managedFields = [], resourceVersion: __, ...metadata } = lease.metadata
  return { metadata, spec, managers: managedFields.map(({ time: ___, ...manager }) => manager) }
}

function specOf(lease: KubeObject): Data<V1LeaseSpec> {
  return (lease['spec'] as Data<V1LeaseSpec> | undefined) ?? {}
}
