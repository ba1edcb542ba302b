// What must hold of a Job, on its own or in a CronJob.
import { isDeepStrictEqual } from 'node:util'
import type { V1CronJobSpec, V1JobSpec } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { labelSelectorCauses, selects } from '../validation/label-selector.ts'
import { fieldImmutable, nonNegative, oneOf } from '../validation/values.ts'
import { templateCauses } from '../validation/workload.ts'
import { scheduleError } from './cron-schedule.ts'

type JobSpec = Data<V1JobSpec>

/** A Job's own checks: its selector selects its pods. */
export function jobCauses(object: KubeObject): StatusCause[] {
  const spec = object['spec'] as JobSpec
  const { selector, template } = spec
  const own = template.metadata?.labels
  const causes = jobSpecCauses('spec', spec)
  if (selector === undefined) causes.push(fieldRequired('spec.selector'))
  else causes.push(...labelSelectorCauses('spec.selector', selector))
  if (spec.manualSelector !== true && selector !== undefined) causes.push(...generatedCauses(object, spec))
  if (selector === undefined || !selects(selector, own))
    causes.push(
      fieldInvalid(
        'spec.template.metadata.labels',
        (own as JsonValue | undefined) ?? null,
        '`selector` does not match template `labels`',
      ),
    )
  return causes
}

const uidLabel = 'batch.kubernetes.io/controller-uid'

function generatedCauses({ metadata }: KubeObject, { selector, template }: JobSpec): StatusCause[] {
  const { uid = '', name = '' } = metadata
  const own = template.metadata?.labels ?? {}
  const causes: StatusCause[] = []
  for (const [label, wanted] of [
    ['batch.kubernetes.io/controller-uid', uid],
    ['controller-uid', uid],
    ['batch.kubernetes.io/job-name', name],
    ['job-name', name],
  ] as const)
    if (own[label] !== wanted)
      causes.push(fieldInvalid(`spec.template.metadata.labels[${label}]`, own, `must be '${wanted}'`))
  const expected = [{ matchLabels: { [uidLabel]: uid } }, { matchLabels: { 'controller-uid': uid } }]
  if (!expected.some((generated) => isDeepStrictEqual(selector, generated)))
    causes.push(fieldInvalid('spec.selector', selector ?? null, '`selector` not auto-generated'))
  return causes
}

/** The spec of a Job at `path`. */
export function jobSpecCauses(path: string, spec: JobSpec): StatusCause[] {
  const causes = [
    ...nonNegative(`${path}.parallelism`, spec.parallelism),
    ...nonNegative(`${path}.completions`, spec.completions),
    ...nonNegative(`${path}.activeDeadlineSeconds`, spec.activeDeadlineSeconds),
    ...nonNegative(`${path}.backoffLimit`, spec.backoffLimit),
    ...nonNegative(`${path}.ttlSecondsAfterFinished`, spec.ttlSecondsAfterFinished),
    ...nonNegative(`${path}.backoffLimitPerIndex`, spec.backoffLimitPerIndex),
    ...nonNegative(`${path}.maxFailedIndexes`, spec.maxFailedIndexes),
    ...oneOf(`${path}.completionMode`, spec.completionMode, ['Indexed', 'NonIndexed']),
  ]
  if (spec.completionMode === 'Indexed' && spec.completions === undefined)
    causes.push(fieldRequired(`${path}.completions`, 'when completion mode is Indexed'))
  causes.push(...templateCauses(`${path}.template`, spec.template))
  const restartPolicy = spec.template.spec?.restartPolicy
  const at = `${path}.template.spec.restartPolicy`
  if (restartPolicy === undefined || restartPolicy === 'Always')
    causes.push(fieldRequired(at, 'valid values: "OnFailure", "Never"'))
  else if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never')
    causes.push(fieldNotSupported(at, restartPolicy, ['OnFailure', 'Never']))
  else if (spec.podFailurePolicy !== undefined && restartPolicy !== 'Never')
    causes.push(fieldInvalid(at, restartPolicy, 'only "Never" is supported when podFailurePolicy is specified'))
  return causes
}

/** Selector, template and the ways of counting stay. */
export function jobChangeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const next = object['spec'] as JobSpec
  const before = old['spec'] as JobSpec
  // The template of a job that has not begun may still be moved about; see KEP-2926.
  const mayMove =
    before.suspend === true && (old['status'] as { startTime?: string } | undefined)?.startTime === undefined
  return (
    [
      'completions',
      'selector',
      'template',
      'completionMode',
      'podFailurePolicy',
      'backoffLimitPerIndex',
      'successPolicy',
    ] as const
  ).flatMap((member) => {
    if (isDeepStrictEqual(next[member], before[member])) return []
    if (member === 'template' && mayMove && isDeepStrictEqual(unscheduled(next), unscheduled(before))) return []
    if (member === 'completions' && next.completionMode === 'Indexed' && next.completions === next.parallelism)
      return []
    return [fieldInvalid(`spec.${member}`, (next[member] as unknown as JsonValue | undefined) ?? null, fieldImmutable)]
  })
}

function unscheduled({ template }: JobSpec): unknown {
  const {
    affinity: _a,
    nodeSelector: _n,
    tolerations: _t,
    schedulingGates: _g,
    ...spec
  } = template.spec ?? { containers: [] }
  return spec
}

export const cronJobRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Data<V1CronJobSpec>
    const { schedule, timeZone } = spec
    const { name = '' } = object.metadata
    const causes: StatusCause[] = []
    if (schedule === '') causes.push(fieldRequired('spec.schedule'))
    else {
      const wrong = scheduleError(schedule)
      if (wrong !== undefined) causes.push(fieldInvalid('spec.schedule', schedule, wrong))
      if (/TZ/.test(schedule))
        causes.push(
          fieldInvalid('spec.schedule', schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'),
        )
    }
    causes.push(...nonNegative('spec.startingDeadlineSeconds', spec.startingDeadlineSeconds))
    if (timeZone !== undefined && !isTimeZone(timeZone))
      causes.push(
        fieldInvalid(
          'spec.timeZone',
          timeZone,
          timeZone === '' ? 'timeZone must be nil or non-empty string' : `unknown time zone ${timeZone}`,
        ),
      )
    causes.push(
      ...oneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace']),
      ...jobSpecCauses('spec.jobTemplate.spec', spec.jobTemplate.spec ?? { template: {} }),
      ...nonNegative('spec.successfulJobsHistoryLimit', spec.successfulJobsHistoryLimit),
      ...nonNegative('spec.failedJobsHistoryLimit', spec.failedJobsHistoryLimit),
    )
    // Its jobs are called like it with eleven characters more.
    if (name.length > 52) causes.push(fieldInvalid('metadata.name', name, 'must be no more than 52 characters'))
    return causes
  },
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
