// CronJobs: schedule, time zone and job template.
import type { V1CronJobSpec } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { nonNegative, requiredOneOf } from '#virtualapi/kinds/validation/values.ts'
import { locationError, scheduleError } from './cron-schedule.ts'
import { jobSpecCauses } from './job-validation.ts'
import { jobSpecWarnings } from '#virtualapi/kinds/warnings/job-warnings.ts'
import { isSameSpec, podOwnerNameWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

type Spec = Data<V1CronJobSpec>

const maxNameLength = 52
const policies = ['Allow', 'Forbid', 'Replace']
const zonePart = /^[A-Za-z.\-_0-9+]{1,14}$/
/** As upstream, whose path has `spec` twice. */
const zoneInSchedule =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details'
const specOf = (object: KubeObject): Spec => object['spec'] as Spec

export const cronJobRules: KindRules = {
  warningsOf(object, old) {
    const { schedule, jobTemplate } = specOf(object)
    const same = isSameSpec(object, old)
    return [
      ...(old === undefined ? podOwnerNameWarnings(object) : []),
      ...(same ? [] : jobSpecWarnings('spec.jobTemplate.spec', jobTemplate.spec)),
      ...(old !== undefined && schedule.includes('TZ') ? [zoneInSchedule] : []),
    ]
  },
  validate(object, old) {
    const spec = specOf(object)
    const { schedule, timeZone } = spec
    const { name = '' } = object.metadata
    const before = old === undefined ? undefined : specOf(old)
    const job = spec.jobTemplate.spec ?? { template: {} }
    return [
      ...(schedule === ''
        ? [fieldRequired('spec.schedule')]
        : scheduleCauses('spec.schedule', spec, before?.schedule.includes('TZ') === true)),
      ...nonNegative('spec.startingDeadlineSeconds', spec.startingDeadlineSeconds),
      ...(timeZone === undefined || (before !== undefined && before.timeZone === timeZone)
        ? []
        : zoneCauses('spec.timeZone', timeZone)),
      ...requiredOneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, policies),
      ...jobSpecCauses('spec.jobTemplate.spec', job),
      ...(job.selector === undefined
        ? []
        : [
            invalidInternal(
              'spec.jobTemplate.spec.selector',
              'v1.LabelSelector',
              job.selector,
              '`selector` will be auto-generated',
            ),
          ]),
      ...(job.manualSelector === true
        ? [fieldNotSupported('spec.jobTemplate.spec.manualSelector', true, ['nil', 'false'])]
        : []),
      ...nonNegative('spec.successfulJobsHistoryLimit', spec.successfulJobsHistoryLimit),
      ...nonNegative('spec.failedJobsHistoryLimit', spec.failedJobsHistoryLimit),
      // The names of its Jobs are 11 characters longer.
      ...(old === undefined && name.length > maxNameLength
        ? [fieldInvalid('metadata.name', name, `must be no more than ${maxNameLength} characters`)]
        : []),
    ]
  },
}

function scheduleCauses(path: string, { schedule, timeZone }: Spec, mayHaveZone: boolean): StatusCause[] {
  const wrong = scheduleError(schedule)
  const causes = wrong === undefined ? [] : [fieldInvalid(path, schedule, wrong)]
  if (!schedule.includes('TZ')) return causes
  if (!mayHaveZone)
    causes.push(fieldInvalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'))
  else if (timeZone !== undefined)
    causes.push(fieldInvalid(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'))
  return causes
}

function zoneCauses(path: string, zone: string): StatusCause[] {
  if (zone === '') return [fieldInvalid(path, zone, 'timeZone must be nil or non-empty string')]
  const unknown = [fieldInvalid(path, zone, `unknown time zone ${zone}`)]
  const odd = (part: string): boolean => part === '.' || part === '..' || part.startsWith('-') || !zonePart.test(part)
  if (zone.split('/').some(odd)) return unknown
  const wrong = locationError(zone)
  return [
    ...(zone.toLowerCase() === 'local'
      ? [
          fieldInvalid(
            path,
            zone,
            'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
          ),
        ]
      : []),
    ...(wrong === undefined ? [] : [fieldInvalid(path, zone, wrong)]),
  ]
}
