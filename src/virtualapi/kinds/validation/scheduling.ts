// Validation of tolerations, affinity and topology spread constraints.
import type {
  V1Affinity,
  V1NodeAffinity,
  V1PodAffinity,
  V1PodAffinityTerm,
  V1PreferredSchedulingTerm,
  V1Toleration,
  V1TopologySpreadConstraint,
  V1WeightedPodAffinityTerm,
} from '@kubernetes/client-node'
import { labelValueErrors } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, positive, qualifiedName, taintEffects } from './basic-rules.ts'
import { labelKeys } from './label-keys.ts'
import { labelSelector } from './label-selector.ts'
import { nodeSelector, preferredNodeTerm } from './node-selector.ts'
import { all, each, fields, given, must, nonEmpty, oneOf, optional, type Rule } from './vocabulary.ts'

const everything = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'

export const toleration = all<Data<V1Toleration>>(
  fields({ key: given(qualifiedName) }),
  ({ key = '', operator = '', value = '', effect = '', tolerationSeconds }, report) => {
    if (key === '' && operator !== 'Exists') report.invalid('operator', operator, everything)
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      report.invalid('effect', effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if (operator === 'Equal' || operator === '') {
      const wrong = labelValueErrors(value)
      if (wrong.length > 0) report.invalid('operator', value, wrong.join(';'))
    } else if (operator !== 'Exists') report.notSupported('operator', operator, ['Equal', 'Exists'])
    else if (value !== '') report.invalid('operator', value, "value must be empty when `operator` is 'Exists'")
  },
  fields({ effect: given(oneOf(taintEffects)) }),
)

export const tolerations = each(toleration)

const weight = must((value: number) => value >= 1 && value <= 100, 'must be in the range 1-100')

const podTerm = all<Data<V1PodAffinityTerm>>(
  fields({ labelSelector, namespaceSelector: labelSelector }),
  // As upstream, the path has no index.
  ({ namespaces }, report) => namespaces?.forEach((name) => report.at('namespace', label, name)),
  labelKeys,
  fields({ topologyKey: all<string>(nonEmpty('can not be empty'), qualifiedName) }),
)
const podAffinity = fields<Data<V1PodAffinity>>({
  requiredDuringSchedulingIgnoredDuringExecution: each(podTerm),
  preferredDuringSchedulingIgnoredDuringExecution: each(
    fields<Data<V1WeightedPodAffinityTerm>>({ weight, podAffinityTerm: podTerm }),
  ),
})
const nodeAffinity = fields<Data<V1NodeAffinity>>({
  requiredDuringSchedulingIgnoredDuringExecution: optional(nodeSelector),
  preferredDuringSchedulingIgnoredDuringExecution: each(
    fields<Data<V1PreferredSchedulingTerm>>({ weight, preference: preferredNodeTerm }),
  ),
})
export const affinity = fields<Data<V1Affinity>>({
  nodeAffinity: optional(nodeAffinity),
  podAffinity: optional(podAffinity),
  podAntiAffinity: optional(podAffinity),
})

type Constraint = Data<V1TopologySpreadConstraint>

const pairOf = ({ topologyKey, whenUnsatisfiable }: Constraint): string => `{${topologyKey}, ${whenUnsatisfiable}}`
type LastOfPair = ReadonlyMap<string, Constraint>
/** Reports a constraint as a duplicate unless it is the last one with its pair. */
const lastOfPair: Rule<Constraint, LastOfPair> = (constraint, report, last) => {
  const pair = pairOf(constraint)
  if (last.get(pair) !== constraint) report.duplicate('{topologyKey, whenUnsatisfiable}', pair)
}
const nodePolicy = oneOf(['Honor', 'Ignore'])

const constraint = all<Constraint, LastOfPair>(
  fields<Constraint>({
    maxSkew: positive,
    topologyKey: nonEmpty('can not be empty'),
    whenUnsatisfiable: oneOf(['DoNotSchedule', 'ScheduleAnyway']),
  }),
  lastOfPair,
  fields<Constraint>({ minDomains: positive }),
  ({ minDomains, whenUnsatisfiable: action }, report) => {
    const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`
    if (minDomains !== undefined && action !== 'DoNotSchedule') report.invalid('minDomains', minDomains, detail)
  },
  fields<Constraint>({ nodeAffinityPolicy: nodePolicy, nodeTaintsPolicy: nodePolicy }),
  labelKeys,
  fields<Constraint>({ labelSelector }),
)

export const spreadConstraints: Rule<readonly Constraint[] | undefined> = (list, report) =>
  list && report.each(list, constraint, new Map(list.map((one) => [pairOf(one), one])))
