// DaemonSets. An annotation counts the generations of their template.
import type { V1DaemonSetSpec } from '@kubernetes/client-node'
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { atMostAll, intOrPercent, isZeroAmount, nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { isEmptySelector, labelSelector, type LabelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import { all, fields, present, validatingSpec, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { alwaysRunning, isUsable, podTemplate, selectedTemplate } from '#virtualapi/kinds/validation/workload.ts'
import { templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'
import { selectorStays, unsupportedStrategy } from './deployment.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1DaemonSetSpec>

interface DaemonSet extends KubeObject {
  spec: Spec
}

const generationAnnotation = 'deprecated.daemonset.template.generation'

const rollingUpdateRule = present(
  all<NonNullable<NonNullable<Spec['updateStrategy']>['rollingUpdate']>>(
    fields({ maxUnavailable: intOrPercent, maxSurge: intOrPercent }),
    fields({ maxUnavailable: atMostAll, maxSurge: atMostAll }),
    ({ maxUnavailable, maxSurge }, report) => {
      if (isZeroAmount(maxUnavailable) && isZeroAmount(maxSurge))
        report.required('maxUnavailable', 'cannot be 0 when maxSurge is 0')
      else if (!isZeroAmount(maxUnavailable) && !isZeroAmount(maxSurge))
        report.invalid('maxSurge', maxSurge ?? 0, 'may not be set when maxUnavailable is non-zero')
    },
  ),
)

const strategyRule: Rule<Spec['updateStrategy']> = (strategy = {}, report) => {
  if (strategy.type === 'RollingUpdate') report.at('rollingUpdate', rollingUpdateRule, strategy.rollingUpdate)
  else if (strategy.type !== 'OnDelete')
    unsupportedStrategy(report, 'apps.DaemonSetUpdateStrategy', strategy, ['RollingUpdate', 'OnDelete'])
}

const specRule = all<Spec>(
  fields({ selector: labelSelector }),
  (spec, report) => {
    const selector = spec.selector as LabelSelector | null
    const isEmpty = selector !== null && isEmptySelector(selector)
    if (!isEmpty && isUsable(selector)) report.at('template', selectedTemplate, spec.template, selector)
    if (isEmpty) report.invalid('selector', {}, 'empty selector is invalid for daemonset')
  },
  fields<Spec>({
    template: all(podTemplate, alwaysRunning('DaemonSet')),
    minReadySeconds: nonNegative,
    updateStrategy: strategyRule,
    revisionHistoryLimit: nonNegative,
  }),
)

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
  validate: validatingSpec(specRule),
  validateChange: selectorStays,
}

function generationOf({ metadata }: KubeObject): number {
  return Number(metadata.annotations?.[generationAnnotation] ?? 0) || 0
}

function setGeneration({ metadata }: KubeObject, generation: number): void {
  metadata.annotations = { ...metadata.annotations, [generationAnnotation]: String(generation) }
}
