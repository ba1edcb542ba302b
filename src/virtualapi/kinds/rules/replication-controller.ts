// ReplicationControllers and PodTemplates.
import type { V1ReplicationControllerSpec } from '@kubernetes/client-node'
import { fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  alwaysRunningCauses,
  templateCauses,
  unselectedCauses,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import { nonNegative } from '#virtualapi/kinds/validation/values.ts'
import { isSameSpec, podOwnerNameWarnings, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

const specOf = (object: KubeObject): Data<V1ReplicationControllerSpec> =>
  object['spec'] as Data<V1ReplicationControllerSpec>

export const replicationControllerRules: KindRules = {
  warningsOf(object, old) {
    if (old === undefined)
      return [...podOwnerNameWarnings(object), ...templateWarnings('spec.template', specOf(object).template)]
    // As upstream, the warnings are about the old template.
    return isSameSpec(object, old) ? [] : templateWarnings('spec.template', specOf(old).template)
  },
  validate(object, old) {
    const causes = specCauses('spec', specOf(object))
    // As upstream, which validates an update twice.
    return old === undefined ? causes : [...causes, ...causes]
  },
}

function specCauses(path: string, spec: Data<V1ReplicationControllerSpec>): StatusCause[] {
  const { selector = {}, template } = spec
  const empty = Object.keys(selector).length === 0
  const at = `${path}.template`
  return [
    ...nonNegative(`${path}.minReadySeconds`, spec.minReadySeconds),
    ...(empty ? [fieldRequired(`${path}.selector`)] : []),
    ...nonNegative(`${path}.replicas`, spec.replicas),
    ...(template === undefined
      ? [fieldRequired(at)]
      : [
          ...(empty ? [] : unselectedCauses(at, template, { matchLabels: selector })),
          ...templateCauses(at, template),
          ...alwaysRunningCauses(at, template, 'ReplicationController'),
        ]),
  ]
}

export const podTemplateRules: KindRules = {
  warningsOf: (object, old) =>
    isSameSpec(object, old) ? [] : templateWarnings('template', object['template'] as PodTemplate),
  validate: (object) => templateCauses('template', object['template'] as PodTemplate),
}
