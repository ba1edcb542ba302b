// Validation of tolerations, affinity and topology spread constraints.
import type {
  V1Affinity,
  V1PodAffinity,
  V1PodAffinityTerm,
  V1Toleration,
  V1TopologySpreadConstraint,
} from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  labelValueErrors,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelKeysCauses } from './label-keys.ts'
import { labelSelectorCauses } from './label-selector.ts'
import { nodeSelectorCauses, nodeTermCauses } from './node-selector.ts'
import { label, oneOf, positive, qualifiedName } from './values.ts'

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const
const everything = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
const actions = ['DoNotSchedule', 'ScheduleAnyway']
const nodePolicies = ['Honor', 'Ignore']

export function tolerationCauses(path: string, tolerations: readonly Data<V1Toleration>[] | undefined): StatusCause[] {
  return (tolerations ?? []).flatMap((toleration, index) => {
    const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
    const at = `${path}[${index}]`
    const causes = key === '' ? [] : qualifiedName(`${at}.key`, key)
    if (key === '' && operator !== 'Exists') causes.push(fieldInvalid(`${at}.operator`, operator, everything))
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      causes.push(fieldInvalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if (operator === 'Equal' || operator === '') {
      const wrong = labelValueErrors(value)
      if (wrong.length > 0) causes.push(fieldInvalid(`${at}.operator`, value, wrong.join(';')))
    } else if (operator === 'Exists') {
      if (value !== '')
        causes.push(fieldInvalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'"))
    } else causes.push(fieldNotSupported(`${at}.operator`, operator, ['Equal', 'Exists']))
    return [...causes, ...oneOf(`${at}.effect`, effect, taintEffects)]
  })
}

export function affinityCauses(path: string, affinity: Data<V1Affinity> | undefined): StatusCause[] {
  if (affinity === undefined) return []
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity
  const {
    requiredDuringSchedulingIgnoredDuringExecution: needed,
    preferredDuringSchedulingIgnoredDuringExecution: wanted,
  } = nodeAffinity ?? {}
  const nodePath = `${path}.nodeAffinity`
  return [
    ...(needed ? nodeSelectorCauses(`${nodePath}.requiredDuringSchedulingIgnoredDuringExecution`, needed) : []),
    ...(wanted ?? []).flatMap(({ weight, preference }, index) => {
      const at = `${nodePath}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
      return [
        ...weightCauses(`${at}.weight`, weight),
        ...nodeTermCauses(`${at}.preference`, preference, { checkValues: false }),
      ]
    }),
    ...podAffinityCauses(`${path}.podAffinity`, podAffinity),
    ...podAffinityCauses(`${path}.podAntiAffinity`, podAntiAffinity),
  ]
}

function weightCauses(path: string, weight: number): StatusCause[] {
  return weight < 1 || weight > 100 ? [fieldInvalid(path, weight, 'must be in the range 1-100')] : []
}

function podAffinityCauses(path: string, affinity: Data<V1PodAffinity> | undefined): StatusCause[] {
  const {
    requiredDuringSchedulingIgnoredDuringExecution: needed,
    preferredDuringSchedulingIgnoredDuringExecution: wanted,
  } = affinity ?? {}
  return [
    ...(needed ?? []).flatMap((term, index) =>
      podTermCauses(`${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, term),
    ),
    ...(wanted ?? []).flatMap(({ weight, podAffinityTerm }, index) => {
      const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
      return [...weightCauses(`${at}.weight`, weight), ...podTermCauses(`${at}.podAffinityTerm`, podAffinityTerm)]
    }),
  ]
}

function podTermCauses(path: string, term: Data<V1PodAffinityTerm>): StatusCause[] {
  const { labelSelector, namespaceSelector, namespaces, topologyKey } = term
  return [
    ...labelSelectorCauses(`${path}.labelSelector`, labelSelector),
    ...labelSelectorCauses(`${path}.namespaceSelector`, namespaceSelector),
    ...(namespaces ?? []).flatMap((name) => label(`${path}.namespace`, name)),
    ...labelKeysCauses(path, term),
    ...(topologyKey === '' ? [fieldRequired(`${path}.topologyKey`, 'can not be empty')] : []),
    ...qualifiedName(`${path}.topologyKey`, topologyKey),
  ]
}

export function spreadCauses(
  path: string,
  constraints: readonly Data<V1TopologySpreadConstraint>[] | undefined,
): StatusCause[] {
  if (constraints === undefined) return []
  const pairOf = (one: Data<V1TopologySpreadConstraint>): string => `{${one.topologyKey}, ${one.whenUnsatisfiable}}`
  // Of constraints with the same pair, all but the last are duplicates.
  const last = new Map(constraints.map((one, index) => [pairOf(one), index]))
  return constraints.flatMap((constraint, index) => {
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint
    const at = `${path}[${index}]`
    const causes = positive(`${at}.maxSkew`, maxSkew)
    if (topologyKey === '') causes.push(fieldRequired(`${at}.topologyKey`, 'can not be empty'))
    if (!actions.includes(whenUnsatisfiable))
      causes.push(fieldNotSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, actions))
    const pair = pairOf(constraint)
    if (last.get(pair) !== index) causes.push(fieldDuplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair))
    causes.push(...positive(`${at}.minDomains`, minDomains))
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule')
      causes.push(
        fieldInvalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        ),
      )
    for (const member of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[member]
      if (policy !== undefined && !nodePolicies.includes(policy))
        causes.push(fieldNotSupported(`${at}.${member}`, policy, nodePolicies))
    }
    const { matchLabelKeys } = constraint
    return [
      ...causes,
      ...labelKeysCauses(at, {
        ...(matchLabelKeys === undefined ? {} : { matchLabelKeys }),
        ...(labelSelector === undefined ? {} : { labelSelector }),
      }),
      ...labelSelectorCauses(`${at}.labelSelector`, labelSelector),
    ]
  })
}
