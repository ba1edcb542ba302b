// DaemonSets. An annotation counts the generations of their template.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { V1DaemonSetSpec } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  isEmptySelector,
  labelSelectorCauses,
  type LabelSelector,
} from '#virtualapi/kinds/validation/label-selector.ts'
import {
  alwaysRunningCauses,
  isUsable,
  templateCauses,
  unselectedCauses,
} from '#virtualapi/kinds/validation/workload.ts'
import { atMostAll, intOrPercent, isZeroAmount, nonNegative } from '#virtualapi/kinds/validation/values.ts'
import { selectorStays, unsupportedStrategy } from './deployment.ts'
import { templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

interface DaemonSet extends KubeObject {
  spec: Data<V1DaemonSetSpec>
}

const generationAnnotation = 'deprecated.daemonset.template.generation'

export const daemonSetRules: KindRules = {
  warningsOf: (object, old) =>
    old !== undefined && generationOf(object) === generationOf(old)
      ? []
      : templateWarnings('spec.template', (object as DaemonSet).spec.template),
  beforeDefaults(object) {
    // Upstream's internal form counts in a member, and prints it.
    object.metadata.annotations ??= {}
    object.metadata.annotations[generationAnnotation] ??= '0'
  },
  prepareForCreate(object) {
    setGeneration(object, Math.max(generationOf(object), 1))
  },
  prepareForUpdate(object, old, _context, subresource) {
    if (subresource !== '') return
    const changed = !jsonEqual((object as DaemonSet).spec.template, (old as DaemonSet).spec.template)
    setGeneration(object, generationOf(old) + (changed ? 1 : 0))
  },
  validate(object) {
    const { spec } = object as DaemonSet
    const selector = spec.selector as LabelSelector | null
    const isEmpty = selector !== null && isEmptySelector(selector)
    return [
      ...labelSelectorCauses('spec.selector', selector),
      ...(isEmpty || !isUsable(selector) ? [] : unselectedCauses('spec.template', spec.template, selector)),
      ...(isEmpty ? [fieldInvalid('spec.selector', {}, 'empty selector is invalid for daemonset')] : []),
      ...templateCauses('spec.template', spec.template),
      ...alwaysRunningCauses('spec.template', spec.template, 'DaemonSet'),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...strategyCauses('spec.updateStrategy', spec.updateStrategy ?? {}),
      ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ]
  },
  validateChange: selectorStays,
}

function strategyCauses(path: string, strategy: NonNullable<DaemonSet['spec']['updateStrategy']>): StatusCause[] {
  const { type, rollingUpdate } = strategy
  if (type === 'OnDelete') return []
  if (type !== 'RollingUpdate')
    return [unsupportedStrategy(path, 'apps.DaemonSetUpdateStrategy', strategy, ['RollingUpdate', 'OnDelete'])]
  const at = `${path}.rollingUpdate`
  if (rollingUpdate === undefined) return [fieldRequired(at)]
  const { maxUnavailable, maxSurge } = rollingUpdate
  const causes = [
    ...intOrPercent(`${at}.maxUnavailable`, maxUnavailable),
    ...intOrPercent(`${at}.maxSurge`, maxSurge),
    ...atMostAll(`${at}.maxUnavailable`, maxUnavailable),
    ...atMostAll(`${at}.maxSurge`, maxSurge),
  ]
  if (isZeroAmount(maxUnavailable) && isZeroAmount(maxSurge))
    causes.push(fieldRequired(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'))
  else if (!isZeroAmount(maxUnavailable) && !isZeroAmount(maxSurge))
    causes.push(fieldInvalid(`${at}.maxSurge`, maxSurge ?? 0, 'may not be set when maxUnavailable is non-zero'))
  return causes
}

function generationOf({ metadata }: KubeObject): number {
  return Number(metadata.annotations?.[generationAnnotation] ?? 0) || 0
}

function setGeneration({ metadata }: KubeObject, generation: number): void {
  metadata.annotations = { ...metadata.annotations, [generationAnnotation]: String(generation) }
}
