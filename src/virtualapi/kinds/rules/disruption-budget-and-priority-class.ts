// PodDisruptionBudgets and PriorityClasses.
import type { V1PodDisruptionBudgetSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { atMostAll, intOrPercent } from '#virtualapi/kinds/validation/basic-rules.ts'
import { labelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  changes,
  fields,
  given,
  immutable,
  oneOf,
  unchanged,
  validating,
  validatingChange,
  validatingSpec,
  type ObjectOf,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type BudgetSpec = Data<V1PodDisruptionBudgetSpec>

const amount = all<number | string | undefined>(intOrPercent, atMostAll)

const budgetSpec = all<BudgetSpec>(
  ({ minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy }, report) => {
    if (minAvailable === undefined || maxUnavailable === undefined) return
    const shown = {
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
    }
    report.invalidText('', JSON.stringify(shown), 'minAvailable and maxUnavailable cannot be both set')
  },
  fields<BudgetSpec>({
    minAvailable: amount,
    maxUnavailable: amount,
    selector: labelSelector,
    unhealthyPodEvictionPolicy: given(oneOf(['AlwaysAllow', 'IfHealthyBudget'])),
  }),
)

export const podDisruptionBudgetRules: KindRules = {
  validate: validatingSpec(budgetSpec),
}

interface PriorityClass extends Pick<ObjectOf<unknown>, 'metadata'> {
  readonly value: number
  readonly preemptionPolicy?: string
}

const systemPriorities: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
}
const highestUserPriority = 1_000_000_000
const preemption = given(oneOf(['PreemptLowerPriority', 'Never']))

export const priorityClassRules: KindRules = {
  // The generation stays 1.
  countsChange: () => false,
  validate: validating<PriorityClass>(({ metadata, value, preemptionPolicy }, report, old) => {
    const { name = '' } = metadata
    if (name.startsWith('system-')) {
      const why =
        name in systemPriorities
          ? `value of ${name} PriorityClass must be ${systemPriorities[name] ?? 0}`
          : `${name} is not a known system priority class`
      if (systemPriorities[name] !== value)
        report.forbidden(
          'metadata.name',
          `priority class names with 'system-' prefix are reserved for system use only. error: ${why}`,
        )
    } else if (value > highestUserPriority)
      report.forbidden('value', `maximum allowed value of a user defined priority is ${highestUserPriority}`)
    // On update the field is immutable, which validateChange checks.
    if (old === undefined) report.at('preemptionPolicy', preemption, preemptionPolicy)
  }),
  validateChange: validatingChange(
    changes<PriorityClass>({ value: unchanged('may not be changed in an update.'), preemptionPolicy: immutable() }),
  ),
}
