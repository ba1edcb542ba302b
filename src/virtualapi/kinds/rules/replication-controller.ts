// ReplicationControllers and PodTemplates.
import type { V1ReplicationControllerSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { all, fields, present, validating, validatingSpec } from '#virtualapi/kinds/validation/vocabulary.ts'
import {
  alwaysRunning,
  podTemplate,
  selectedTemplate,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import { isSameSpec, podOwnerNameWarnings, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1ReplicationControllerSpec>

const specOf = (object: KubeObject): Spec => object['spec'] as Spec
const isEmpty = (selector: Spec['selector']): boolean => Object.keys(selector ?? {}).length === 0

const specRule = all<Spec>(
  fields<Spec>({
    minReadySeconds: nonNegative,
    selector: (selector, report) => {
      if (isEmpty(selector)) report.required('')
    },
    replicas: nonNegative,
  }),
  ({ selector, template }, report) => {
    if (template && !isEmpty(selector))
      report.at('template', selectedTemplate, template, { matchLabels: selector ?? {} })
  },
  fields<Spec>({ template: present(all(podTemplate, alwaysRunning('ReplicationController'))) }),
)

export const replicationControllerRules: KindRules = {
  warningsOf(object, old) {
    if (old === undefined)
      return [...podOwnerNameWarnings(object), ...templateWarnings('spec.template', specOf(object).template)]
    // As upstream, the warnings are about the old template.
    return isSameSpec(object, old) ? [] : templateWarnings('spec.template', specOf(old).template)
  },
  // As upstream, which validates an update twice.
  validatesUpdateTwice: true,
  validate: validatingSpec(specRule),
}

export const podTemplateRules: KindRules = {
  warningsOf: (object, old) =>
    isSameSpec(object, old) ? [] : templateWarnings('template', object['template'] as PodTemplate),
  validate: validating(fields<{ template: PodTemplate }>({ template: podTemplate })),
}
