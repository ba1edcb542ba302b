// HorizontalPodAutoscalers: target, replica range, metrics and scaling behavior.
import type {
  V2CrossVersionObjectReference,
  V2HPAScalingPolicy,
  V2HPAScalingRules,
  V2HorizontalPodAutoscalerBehavior,
  V2HorizontalPodAutoscalerSpec,
} from '@kubernetes/client-node'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { notBelowZero, pathSegment, positive } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  each,
  fields,
  must,
  nonEmpty,
  oneOf,
  optional,
  required,
  validating,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { metricRule, type MetricContext } from './autoscaler-metrics.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V2HorizontalPodAutoscalerSpec>
type Reference = Data<V2CrossVersionObjectReference>

/** The apiVersions that a reference may have. `any`: all; `core`: also the core group; `group`: only named groups. */
type VersionCheck = 'any' | 'core' | 'group'

function versionError(apiVersion = '', check: VersionCheck): string | undefined {
  if (check === 'any') return undefined
  const parts = apiVersion.split('/', 3)
  if (parts.length > 2) return `unexpected GroupVersion string: ${apiVersion}`
  return check === 'group' && (parts.length < 2 || parts[0] === '') ? 'apiVersion must specify API group' : undefined
}

/** A scale target or other object: kind and name must be valid path segments. */
const referenceOf = (check: VersionCheck): Rule<Reference> =>
  all<Reference>(
    fields<Reference>({ kind: required(pathSegment), name: required(pathSegment) }),
    ({ apiVersion = '' }, report) => {
      const wrong = versionError(apiVersion, check)
      if (wrong !== undefined) report.invalid('apiVersion', apiVersion, wrong)
    },
  )
const references = { any: referenceOf('any'), core: referenceOf('core'), group: referenceOf('group') }
const noReference: Reference = { kind: '', name: '' }

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

const atMost = (most: number): Rule<number | undefined> =>
  must((value: number) => value <= most, `must be less than or equal to ${most}`)

const policy = fields<Data<V2HPAScalingPolicy>>({
  type: oneOf(['Percent', 'Pods']),
  value: positive,
  periodSeconds: all<number>(positive, atMost(1800)),
})
const scaling = optional(
  fields<Data<V2HPAScalingRules>>({
    stabilizationWindowSeconds: all<number | undefined>(notBelowZero, atMost(3600)),
    selectPolicy: oneOf(['Disabled', 'Max', 'Min']),
    policies: all<Data<V2HPAScalingPolicy>[] | undefined>(nonEmpty('must specify at least one Policy'), each(policy)),
  }),
)
const behavior = optional(fields<Data<V2HorizontalPodAutoscalerBehavior>>({ scaleUp: scaling, scaleDown: scaling }))

interface Context extends MetricContext {
  readonly before: Spec | undefined
}

const specRule = all<Spec, Context>(
  ({ minReplicas, maxReplicas, ...spec }, report, { before }) => {
    const lowest = before?.minReplicas === 0 ? 0 : 1
    if (minReplicas !== undefined && minReplicas < lowest)
      report.invalid('minReplicas', minReplicas, `must be greater than or equal to ${lowest}`)
    if (maxReplicas < 1) report.invalid('maxReplicas', maxReplicas, 'must be greater than 0')
    if (minReplicas !== undefined && maxReplicas < minReplicas)
      report.invalid('maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`')
    const target = (spec.scaleTargetRef as Reference | null | undefined) ?? noReference
    report.at('scaleTargetRef', references[targetCheck(target, before?.scaleTargetRef)], target)
  },
  fields<Spec, Context>({ metrics: each(metricRule) }),
  ({ minReplicas, metrics }, report) => {
    if (minReplicas === 0 && !metrics?.some(({ type }) => type === 'Object' || type === 'External'))
      report.forbidden(
        'metrics',
        'must specify at least one Object or External metric to support scaling to zero replicas',
      )
  },
  fields<Spec>({ behavior }),
)

export const autoscalerRules: KindRules = {
  dropDisabled({ spec }) {
    // The feature gate of `tolerance` is off by default.
    const given = isJsonObject(spec) ? (spec as { behavior?: JsonValue }).behavior : undefined
    for (const rules of isJsonObject(given) ? [given['scaleUp'], given['scaleDown']] : [])
      if (isJsonObject(rules)) delete rules['tolerance']
  },
  validate: validating<ObjectOf<Spec>>(({ spec }, report, old) => {
    const objectReference = references[hadBadMetric(old?.spec) ? 'any' : 'core']
    report.at('spec', specRule, spec, { before: old?.spec, objectReference })
  }),
}
