// HorizontalPodAutoscalers: target, replica range, metrics and scaling behavior.
import type {
  V2CrossVersionObjectReference,
  V2HPAScalingPolicy,
  V2HPAScalingRules,
  V2HorizontalPodAutoscalerSpec,
} from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { metricCauses } from './autoscaler-metrics.ts'

type Spec = Data<V2HorizontalPodAutoscalerSpec>
type Reference = Data<V2CrossVersionObjectReference>

const selectPolicies = ['Disabled', 'Max', 'Min']
const policyTypes = ['Percent', 'Pods']
const maxWindowSeconds = 3600
const maxPeriodSeconds = 1800

const specOf = (object: KubeObject): Spec => object['spec'] as Spec
const noReference: Reference = { kind: '', name: '' }

/** Which apiVersions a reference may have. `any`: all; `core`: also the core group; `group`: only named groups. */
type VersionCheck = 'any' | 'core' | 'group'

export const autoscalerRules: KindRules = {
  dropDisabled({ spec }) {
    // The feature gate of `tolerance` is off by default.
    const behavior = isJsonObject(spec) ? (spec as { behavior?: JsonValue }).behavior : undefined
    for (const rules of isJsonObject(behavior) ? [behavior['scaleUp'], behavior['scaleDown']] : [])
      if (isJsonObject(rules)) delete rules['tolerance']
  },
  validate(object, old) {
    const spec = specOf(object)
    const before = old === undefined ? undefined : specOf(old)
    const { minReplicas, maxReplicas, metrics = [] } = spec
    const target = (spec.scaleTargetRef as Reference | null | undefined) ?? noReference
    const lowest = before?.minReplicas === 0 ? 0 : 1
    const causes: StatusCause[] = []
    if (minReplicas !== undefined && minReplicas < lowest)
      causes.push(fieldInvalid('spec.minReplicas', minReplicas, `must be greater than or equal to ${lowest}`))
    if (maxReplicas < 1) causes.push(fieldInvalid('spec.maxReplicas', maxReplicas, 'must be greater than 0'))
    if (minReplicas !== undefined && maxReplicas < minReplicas)
      causes.push(fieldInvalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`'))
    const ofObjects = hadBadMetric(before) ? 'any' : 'core'
    return [
      ...causes,
      ...referenceCauses('spec.scaleTargetRef', target, targetCheck(target, before?.scaleTargetRef)),
      ...metrics.flatMap((metric, index) => [
        ...metricCauses(`spec.metrics[${index}]`, metric, (path, reference) =>
          referenceCauses(path, reference, ofObjects),
        ),
      ]),
      ...(minReplicas === 0 && !metrics.some(({ type }) => type === 'Object' || type === 'External')
        ? [
            fieldForbidden(
              'spec.metrics',
              'must specify at least one Object or External metric to support scaling to zero replicas',
            ),
          ]
        : []),
      ...rulesCauses('spec.behavior.scaleUp', spec.behavior?.scaleUp),
      ...rulesCauses('spec.behavior.scaleDown', spec.behavior?.scaleDown),
    ]
  },
}

/** An invalid apiVersion that was accepted earlier may stay. */
function targetCheck({ apiVersion = '', kind }: Reference, before: Reference | null | undefined): VersionCheck {
  if (before && (before.apiVersion ?? '') === apiVersion && before.kind === kind) return 'any'
  return kind === 'ReplicationController' ? 'core' : 'group'
}

function hadBadMetric(before: Spec | undefined): boolean {
  return (before?.metrics ?? []).some(
    ({ type, object }) =>
      type === 'Object' &&
      object !== undefined &&
      versionError(object.describedObject.apiVersion, 'core') !== undefined,
  )
}

/** Validates a reference to a scale target or other object: kind and name must be valid path segments. */
function referenceCauses(path: string, { apiVersion = '', kind, name }: Reference, check: VersionCheck): StatusCause[] {
  const segment = (member: string, text: string): StatusCause[] =>
    text === ''
      ? [fieldRequired(`${path}.${member}`)]
      : pathSegmentName(text, { prefix: false }).map((detail) => fieldInvalid(`${path}.${member}`, text, detail))
  const wrong = versionError(apiVersion, check)
  return [
    ...segment('kind', kind),
    ...segment('name', name),
    ...(wrong === undefined ? [] : [fieldInvalid(`${path}.apiVersion`, apiVersion, wrong)]),
  ]
}

function versionError(apiVersion = '', check: VersionCheck): string | undefined {
  if (check === 'any') return undefined
  const parts = apiVersion.split('/', 3)
  if (parts.length > 2) return `unexpected GroupVersion string: ${apiVersion}`
  return check === 'group' && (parts.length < 2 || parts[0] === '') ? 'apiVersion must specify API group' : undefined
}

function rulesCauses(path: string, rules: Data<V2HPAScalingRules> | undefined): StatusCause[] {
  if (rules === undefined) return []
  const { stabilizationWindowSeconds: window = 0, selectPolicy, policies = [] } = rules
  const at = `${path}.stabilizationWindowSeconds`
  const causes: StatusCause[] = []
  if (window < 0) causes.push(fieldInvalid(at, window, 'must be greater than or equal to zero'))
  if (window > maxWindowSeconds)
    causes.push(fieldInvalid(at, window, `must be less than or equal to ${maxWindowSeconds}`))
  if (selectPolicy !== undefined && !selectPolicies.includes(selectPolicy))
    causes.push(fieldNotSupported(`${path}.selectPolicy`, selectPolicy, selectPolicies))
  if (policies.length === 0) causes.push(fieldRequired(`${path}.policies`, 'must specify at least one Policy'))
  return [...causes, ...policies.flatMap((policy, index) => policyCauses(`${path}.policies[${index}]`, policy))]
}

function policyCauses(path: string, { type, value, periodSeconds }: Data<V2HPAScalingPolicy>): StatusCause[] {
  const causes: StatusCause[] = []
  const at = `${path}.periodSeconds`
  if (!policyTypes.includes(type)) causes.push(fieldNotSupported(`${path}.type`, type, policyTypes))
  if (value <= 0) causes.push(fieldInvalid(`${path}.value`, value, 'must be greater than zero'))
  if (periodSeconds <= 0) causes.push(fieldInvalid(at, periodSeconds, 'must be greater than zero'))
  if (periodSeconds > maxPeriodSeconds)
    causes.push(fieldInvalid(at, periodSeconds, `must be less than or equal to ${maxPeriodSeconds}`))
  return causes
}
