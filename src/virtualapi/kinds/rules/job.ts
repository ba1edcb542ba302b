// Jobs: the selector is generated from the uid unless spec.manualSelector is true.
import type { V1JobSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { jobCauses, jobChangeCauses } from './job-validation.ts'
import { jobSpecWarnings } from '#virtualapi/kinds/warnings/job-warnings.ts'
import { isSameSpec, podOwnerNameWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

export interface Job extends KubeObject {
  spec: Data<V1JobSpec>
}

const uidLabel = 'batch.kubernetes.io/controller-uid'

export const jobRules: KindRules = {
  warningsOf(object, old) {
    if (isSameSpec(object, old)) return []
    const ofName = old === undefined ? podOwnerNameWarnings(object) : []
    return [...ofName, ...jobSpecWarnings('spec', (object as Job).spec)]
  },
  prepareForCreate(object) {
    const { spec, metadata } = object as Job
    if (spec.manualSelector === true) return
    const { name = '', uid = '' } = metadata
    const template = (spec.template.metadata ??= {})
    template.labels = {
      'job-name': name,
      'batch.kubernetes.io/job-name': name,
      'controller-uid': uid,
      [uidLabel]: uid,
      ...template.labels,
    }
    spec.selector ??= {}
    spec.selector.matchLabels = { [uidLabel]: uid, ...spec.selector.matchLabels }
    // As upstream, a Job without labels gets those of its template.
    if (Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...template.labels }
  },
  validate: jobCauses,
  validateChange: jobChangeCauses,
}
