// Kinds that bound and order others: quota, budgets, priorities, autoscalers.
import { isDeepStrictEqual } from 'node:util'
import type {
  V1PodDisruptionBudgetSpec,
  V1ResourceQuotaSpec,
  V2HorizontalPodAutoscalerSpec,
} from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { labelSelectorCauses } from '../validation/label-selector.ts'
import { isInteger, nonNegativeQuantity, quotaResources, resourceNameCauses } from '../validation/resources.ts'
import { atMostAll, intOrPercent, invalidStruct, oneOf, required } from '../validation/values.ts'

const scopes = [
  'BestEffort',
  'NotBestEffort',
  'Terminating',
  'NotTerminating',
  'PriorityClass',
  'CrossNamespacePodAffinity',
  'VolumeAttributesClass',
]

export const resourceQuotaRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Data<V1ResourceQuotaSpec>
    const causes = Object.entries(spec.hard ?? {}).flatMap(([name, text]) => {
      const at = `spec.hard[${name}]`
      const counted = quotaResources.has(name) && !/cpu|memory|storage/.test(name)
      return [
        ...resourceNameCauses(at, name, quotaResources, 'quota'),
        ...nonNegativeQuantity(at, text),
        ...((counted || name.startsWith('count/')) && !isInteger(text)
          ? [fieldInvalid(at, text, 'must be an integer')]
          : []),
      ]
    })
    const own = spec.scopes ?? []
    if (own.length === 0) return causes
    const unknown = own.filter((scope) => !scopes.includes(scope))
    causes.push(...unknown.map(() => fieldInvalid('spec.scopes', own, 'unsupported scope')))
    for (const pair of [
      ['BestEffort', 'NotBestEffort'],
      ['Terminating', 'NotTerminating'],
    ])
      if (pair.every((scope) => own.includes(scope)))
        causes.push(fieldInvalid('spec.scopes', own, 'conflicting scopes'))
    return causes
  },
  validateChange(object, old) {
    const { scopes: next = [] } = object['spec'] as Data<V1ResourceQuotaSpec>
    const { scopes: before = [] } = old['spec'] as Data<V1ResourceQuotaSpec>
    return isDeepStrictEqual([...next].sort(), [...before].sort())
      ? []
      : [fieldInvalid('spec.scopes', next, 'field is immutable')]
  },
}

export const disruptionBudgetRules: KindRules = {
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
  // One for ever: little of it may change.
  countsChange: () => false,
  validate(object) {
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
    return [...causes, ...oneOf('preemptionPolicy', policy, ['PreemptLowerPriority', 'Never'])]
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

export const autoscalerRules: KindRules = {
  beforeDefaults({ spec }) {
    // Behind a feature gate that is off by default.
    const { behavior } = spec as Partial<Data<V2HorizontalPodAutoscalerSpec>>
    for (const member of ['scaleUp', 'scaleDown'] as const)
      if (behavior?.[member] !== undefined) Reflect.deleteProperty(behavior[member], 'tolerance')
  },
  validate(object) {
    const spec = object['spec'] as Data<V2HorizontalPodAutoscalerSpec>
    const { minReplicas, maxReplicas, scaleTargetRef: target } = spec
    const causes: StatusCause[] = []
    if (minReplicas !== undefined && minReplicas < 1)
      causes.push(fieldInvalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1'))
    if (maxReplicas < 1) causes.push(fieldInvalid('spec.maxReplicas', maxReplicas, 'must be greater than 0'))
    if (minReplicas !== undefined && maxReplicas < minReplicas)
      causes.push(fieldInvalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`'))
    causes.push(
      ...required('spec.scaleTargetRef.kind', target.kind),
      ...required('spec.scaleTargetRef.name', target.name),
    )
    if (!target.apiVersion)
      causes.push(fieldInvalid('spec.scaleTargetRef.apiVersion', '', 'apiVersion must specify API group'))
    for (const [index, metric] of (spec.metrics ?? []).entries())
      causes.push(...metricCauses(`spec.metrics[${index}]`, metric))
    for (const member of ['scaleUp', 'scaleDown'] as const) {
      const rules = spec.behavior?.[member]
      const at = `spec.behavior.${member}`
      const window = rules?.stabilizationWindowSeconds
      if (window !== undefined && window < 0)
        causes.push(fieldInvalid(`${at}.stabilizationWindowSeconds`, window, 'must be greater than or equal to zero'))
      if (window !== undefined && window > 3600)
        causes.push(fieldInvalid(`${at}.stabilizationWindowSeconds`, window, 'must be less than or equal to 3600'))
      causes.push(...oneOf(`${at}.selectPolicy`, rules?.selectPolicy, ['Disabled', 'Max', 'Min']))
      if (rules !== undefined && !rules.policies?.length)
        causes.push(fieldRequired(`${at}.policies`, 'must specify at least one Policy'))
    }
    return causes
  },
}

type Metric = NonNullable<Data<V2HorizontalPodAutoscalerSpec>['metrics']>[number]
const metricTypes = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource']

function metricCauses(path: string, metric: Metric): StatusCause[] {
  const { type } = metric
  const causes = type === '' ? [fieldRequired(`${path}.type`, 'must specify a metric source type')] : []
  if (type !== '' && !metricTypes.includes(type))
    // Twice, as upstream says it.
    return [1, 2].map(() => fieldNotSupported(`${path}.type`, type, metricTypes))
  const member = (type.charAt(0).toLowerCase() + type.slice(1)) as keyof Metric
  if (type !== '' && metric[member] === undefined)
    return [...causes, fieldRequired(`${path}.${member}`, 'must populate information for the given metric source')]
  const { resource } = metric
  if (type !== 'Resource' || resource === undefined) return causes
  const { averageUtilization, averageValue } = resource.target
  if (averageUtilization === undefined && averageValue === undefined)
    causes.push(
      fieldRequired(
        `${path}.resource.target.averageUtilization`,
        'must set either a target raw value or a target utilization',
      ),
    )
  if (averageUtilization !== undefined && averageUtilization < 1)
    causes.push(
      fieldInvalid(`${path}.resource.target.averageUtilization`, averageUtilization, 'must be greater than 0'),
    )
  return causes
}
