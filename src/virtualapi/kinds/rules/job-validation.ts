// Validation of Jobs and of the Job templates in CronJobs.
import { isDeepStrictEqual } from 'node:util'
import type { V1JobSpec } from '@kubernetes/client-node'
import { dns1123LabelErrors } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { domainPath, nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { isEmptySelector, labelSelector, selects } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  changes,
  fields,
  immutable,
  maxBytes,
  must,
  oneOf,
  optional,
  present,
  validating,
  validatingChange,
  when,
  type ObjectOf,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { isUsable, podTemplate, selectedTemplate } from '#virtualapi/kinds/validation/workload.ts'
import { failurePolicy, successPolicy } from './job-policies.ts'

type JobSpec = Data<V1JobSpec>
type Job = ObjectOf<JobSpec, { readonly startTime?: string }>

const maxIndexed = 100_000
const maxWithManyIndexes = 10_000

/** Bounds the state that is stored per index. */
const indexed: Rule<JobSpec> = (spec, report) => {
  const { completions, parallelism = 0, maxFailedIndexes: failed, backoffLimitPerIndex } = spec
  const atMost = (member: string, value: number, most: number, when: string): void => {
    if (value > most) report.invalid(member, value, `must be less than or equal to ${most}${when}`)
  }
  if (completions === undefined) report.required('completions', 'when completion mode is Indexed')
  atMost('parallelism', parallelism, maxIndexed, ' when completion mode is Indexed')
  if (completions !== undefined && failed !== undefined && failed > completions)
    report.invalid('maxFailedIndexes', failed, 'must be less than or equal to completions')
  atMost('maxFailedIndexes', failed ?? 0, maxIndexed, '')
  if (completions === undefined || completions <= maxIndexed || backoffLimitPerIndex === undefined) return
  const many = ` when completions are above ${maxIndexed} and used with backoff limit per index`
  if (failed === undefined)
    report.required('maxFailedIndexes', `must be specified when completions is above ${maxIndexed}`)
  atMost('parallelism', parallelism, maxWithManyIndexes, many)
  atMost('maxFailedIndexes', failed ?? 0, maxWithManyIndexes, many)
}

const needsIndexes = must(() => false, 'requires indexed completion mode')

const restartPolicy: Rule<JobSpec> = ({ template, podFailurePolicy }, report) => {
  const at = 'template.spec.restartPolicy'
  const policy = template.spec?.restartPolicy ?? 'Always'
  if (policy === 'Always' || policy === '') report.required(at, 'valid values: "OnFailure", "Never"')
  else if (policy !== 'OnFailure' && policy !== 'Never') report.notSupported(at, policy, ['OnFailure', 'Never'])
  else if (podFailurePolicy !== undefined && policy !== 'Never')
    report.invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified')
}

const replacement = oneOf(['Failed', 'TerminatingOrFailed'])
const replacementOfFailed = oneOf(['Failed'])

export const jobSpec = all<JobSpec>(
  fields({
    parallelism: nonNegative,
    completions: nonNegative,
    activeDeadlineSeconds: nonNegative,
    backoffLimit: nonNegative,
    ttlSecondsAfterFinished: nonNegative,
    backoffLimitPerIndex: nonNegative,
    maxFailedIndexes: nonNegative,
  }),
  ({ maxFailedIndexes, backoffLimitPerIndex }, report) => {
    if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined)
      report.required('backoffLimitPerIndex', 'when maxFailedIndexes is specified')
  },
  fields({
    managedBy: optional(all<string>(domainPath, maxBytes(63))),
    completionMode: oneOf(['NonIndexed', 'Indexed']),
  }),
  when(({ completionMode }) => completionMode === 'Indexed', indexed),
  when(
    ({ completionMode }) => completionMode === undefined || completionMode === 'NonIndexed',
    fields({ backoffLimitPerIndex: needsIndexes, maxFailedIndexes: needsIndexes }),
  ),
  failurePolicy,
  successPolicy,
  ({ podFailurePolicy, podReplacementPolicy }, report) =>
    report.at(
      'podReplacementPolicy',
      podFailurePolicy === undefined ? replacement : replacementOfFailed,
      podReplacementPolicy,
    ),
  fields({ template: podTemplate }),
  restartPolicy,
)

const withSelector = all<JobSpec>(
  jobSpec,
  fields({ selector: present(labelSelector) }),
  ({ selector, template }, report) => {
    if (isUsable(selector) && (selector === undefined || !isEmptySelector(selector)))
      report.at('template', selectedTemplate, template, selector)
  },
)

/** The selector and the labels of the template that are generated. */
function checkGenerated({ metadata, spec }: Job, report: Report): void {
  const { selector, template, manualSelector } = spec
  if (manualSelector === true || selector === undefined) return
  const { uid = '', name = '' } = metadata
  const own = template.metadata?.labels ?? {}
  const expected = {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  }
  for (const [label, wanted] of Object.entries(expected)) {
    const at = `spec.template.metadata.labels[${label}]`
    if (!Object.hasOwn(own, label)) report.required(at, `must be '${wanted}'`)
    else if (own[label] !== wanted) report.invalid(at, own, `must be '${wanted}'`)
  }
  if (isUsable(selector) && !selects(selector, expected))
    report.invalidStruct('spec.selector', 'v1.LabelSelector', selector, '`selector` not auto-generated')
}

/** A Job. As upstream, some errors of an update are repeated. */
export const jobCauses = validating<Job>((job, report, old) => {
  checkGenerated(job, report)
  report.at('spec', withSelector, job.spec)
  const { completionMode, completions = 0 } = job.spec
  const { name = '' } = job.metadata
  // The hostname of the last pod of an Indexed Job, `NAME-INDEX`, must be a DNS label.
  const longest = `${name}-${completions - 1}`
  if (completionMode === 'Indexed' && completions > 0 && dns1123LabelErrors(longest).length > 0)
    report.invalid('metadata.name', name, `will not able to create pod with invalid DNS label: ${longest}`)
  if (old !== undefined) report.at('spec', withSelector, job.spec)
})

const fixed = immutable()

/** completions is mutable for Indexed Jobs only, and only together with parallelism. */
const completionsChange: Rule<JobSpec, JobSpec> = (
  { completions = null, completionMode, parallelism },
  report,
  old,
) => {
  if (completionMode !== 'Indexed') report.at('completions', fixed, completions, old.completions)
  else if (completions !== (old.completions ?? null) && completions !== null && completions !== parallelism)
    report.invalid('completions', completions, 'can only be modified in tandem with spec.parallelism')
}

/** The scheduling constraints of a suspended Job that has not started are mutable (KEP-2926). */
const mayMove = ({ spec, status }: Job): boolean => spec.suspend === true && status?.startTime === undefined

/** The immutable fields of a Job: selector, template, completion mode and policies. */
export const jobChangeCauses = validatingChange<Job>((job, report, old) => {
  const moved = mayMove(old) && isDeepStrictEqual(unscheduled(job.spec), unscheduled(old.spec))
  report.at('spec', specChange, job.spec, moved ? { ...old.spec, template: job.spec.template } : old.spec)
})
const specChange = all<JobSpec, JobSpec>(
  completionsChange,
  changes<JobSpec>({
    selector: immutable('v1.LabelSelector'),
    template: immutable('core.PodTemplateSpec'),
    completionMode: immutable(),
    podFailurePolicy: immutable('batch.PodFailurePolicy'),
    backoffLimitPerIndex: immutable(),
    managedBy: immutable(),
    successPolicy: immutable('batch.SuccessPolicy'),
  }),
)

/** The pod spec of the template without its scheduling constraints. */
function unscheduled({ template }: JobSpec): unknown {
  const {
    affinity,
    nodeSelector: _n,
    tolerations: _t,
    schedulingGates: _g,
    ...spec
  } = template.spec ?? { containers: [] }
  const { nodeAffinity: _a, ...others } = affinity ?? {}
  return { ...spec, affinity: others }
}
