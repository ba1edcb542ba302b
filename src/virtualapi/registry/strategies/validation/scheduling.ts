// Where a pod may run: tolerations, affinity, spreading.
import type {
  V1Affinity,
  V1NodeSelectorRequirement,
  V1NodeSelectorTerm,
  V1PodAffinity,
  V1PodAffinityTerm,
  V1Toleration,
  V1TopologySpreadConstraint,
} from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  labelValueErrors,
} from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { labelSelectorCauses } from './label-selector.ts'
import { oneOf, positive, qualifiedName } from './values.ts'

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const
const everything = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'

export function tolerationCauses(path: string, tolerations: readonly Data<V1Toleration>[] | undefined): StatusCause[] {
  return (tolerations ?? []).flatMap((toleration, index) => {
    const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
    const at = `${path}[${index}]`
    const causes = key === '' ? [] : qualifiedName(`${at}.key`, key)
    if (key === '' && operator !== 'Exists') causes.push(fieldInvalid(`${at}.operator`, operator, everything))
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      causes.push(fieldInvalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if (operator === 'Equal' || operator === '')
      causes.push(...labelValueErrors(value).map((text) => fieldInvalid(`${at}.operator`, value, text)))
    else if (operator === 'Exists') {
      if (value !== '')
        causes.push(fieldInvalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'"))
    } else causes.push(fieldNotSupported(`${at}.operator`, operator, ['Equal', 'Exists']))
    return [...causes, ...oneOf(`${at}.effect`, effect, taintEffects)]
  })
}

export function affinityCauses(path: string, affinity: Data<V1Affinity> | undefined): StatusCause[] {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {}
  const {
    requiredDuringSchedulingIgnoredDuringExecution: needed,
    preferredDuringSchedulingIgnoredDuringExecution: wanted,
  } = nodeAffinity ?? {}
  const nodePath = `${path}.nodeAffinity`
  const causes: StatusCause[] = []
  if (needed) {
    const at = `${nodePath}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`
    const terms = needed.nodeSelectorTerms as typeof needed.nodeSelectorTerms | null
    if (!terms?.length) causes.push(fieldRequired(at, 'must have at least one node selector term'))
    else causes.push(...terms.flatMap((term, index) => nodeTermCauses(`${at}[${index}]`, term)))
  }
  for (const [index, { weight, preference }] of (wanted ?? []).entries()) {
    const at = `${nodePath}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
    causes.push(...weightCauses(`${at}.weight`, weight), ...nodeTermCauses(`${at}.preference`, preference))
  }
  return [
    ...causes,
    ...podAffinityCauses(`${path}.podAffinity`, podAffinity),
    ...podAffinityCauses(`${path}.podAntiAffinity`, podAntiAffinity),
  ]
}

function weightCauses(path: string, weight: number): StatusCause[] {
  return weight < 1 || weight > 100 ? [fieldInvalid(path, weight, 'must be in the range 1-100')] : []
}

function nodeTermCauses(path: string, { matchExpressions, matchFields }: Data<V1NodeSelectorTerm>): StatusCause[] {
  return [
    ...(matchExpressions ?? []).flatMap((item, index) =>
      nodeRequirementCauses(`${path}.matchExpressions[${index}]`, item),
    ),
    ...(matchFields ?? []).flatMap(({ key }, index) =>
      key === 'metadata.name'
        ? []
        : [fieldInvalid(`${path}.matchFields[${index}].key`, key, 'not a valid field selector key')],
    ),
  ]
}

function nodeRequirementCauses(
  path: string,
  { key, operator, values }: Data<V1NodeSelectorRequirement>,
): StatusCause[] {
  const list = values ?? []
  const causes: StatusCause[] = []
  if (operator === 'In' || operator === 'NotIn') {
    if (list.length === 0)
      causes.push(fieldRequired(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (list.length > 0)
      causes.push(
        fieldForbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      )
  } else if (operator === 'Gt' || operator === 'Lt') {
    if (list.length !== 1)
      causes.push(fieldRequired(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
  } else causes.push(fieldInvalid(`${path}.operator`, operator, 'not a valid selector operator'))
  return [...causes, ...qualifiedName(`${path}.key`, key)]
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

function podTermCauses(
  path: string,
  { labelSelector, namespaceSelector, topologyKey }: Data<V1PodAffinityTerm>,
): StatusCause[] {
  return [
    ...labelSelectorCauses(`${path}.labelSelector`, labelSelector),
    ...labelSelectorCauses(`${path}.namespaceSelector`, namespaceSelector),
    ...(topologyKey === '' ? [fieldRequired(`${path}.topologyKey`, 'can not be empty')] : []),
    ...qualifiedName(`${path}.topologyKey`, topologyKey),
  ]
}

export function spreadCauses(
  path: string,
  constraints: readonly Data<V1TopologySpreadConstraint>[] | undefined,
): StatusCause[] {
  const seen = new Set<string>()
  return (constraints ?? []).flatMap((constraint, index) => {
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint
    const at = `${path}[${index}]`
    const causes = positive(`${at}.maxSkew`, maxSkew)
    if (topologyKey === '') causes.push(fieldRequired(`${at}.topologyKey`, 'can not be empty'))
    else causes.push(...qualifiedName(`${at}.topologyKey`, topologyKey))
    if (!['DoNotSchedule', 'ScheduleAnyway'].includes(whenUnsatisfiable))
      causes.push(fieldNotSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']))
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`
    if (seen.has(pair)) causes.push(fieldDuplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair))
    seen.add(pair)
    causes.push(...positive(`${at}.minDomains`, minDomains))
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule')
      causes.push(
        fieldInvalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        ),
      )
    return [...causes, ...labelSelectorCauses(`${at}.labelSelector`, labelSelector)]
  })
}
