// CronJobs: schedule, time zone and job template.
import type { V1CronJobSpec, V1JobTemplateSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  fields,
  must,
  oneOf,
  required,
  validating,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { jobSpecWarnings } from '#virtualapi/kinds/warnings/job-warnings.ts'
import { isSameSpec, podOwnerNameWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'
import { locationError, scheduleError } from './cron-schedule.ts'
import { jobSpec } from './job-validation.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1CronJobSpec>
type Old = Spec | undefined

const maxNameLength = 52
const zonePart = /^[A-Za-z.\-_0-9+]{1,14}$/

const schedule: Rule<Spec, Old> = ({ schedule: text, timeZone }, report, old) => {
  if (text === '') {
    report.required('schedule')
    return
  }
  const wrong = scheduleError(text)
  if (wrong !== undefined) report.invalid('schedule', text, wrong)
  if (!text.includes('TZ')) return
  if (old?.schedule.includes('TZ') !== true)
    report.invalid('schedule', text, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead')
  else if (timeZone !== undefined)
    report.invalid('schedule', text, 'cannot use both timeZone field and TZ or CRON_TZ in schedule')
}

const timeZoneRule: Rule<Spec, Old> = ({ timeZone: zone }, report, old) => {
  if (zone === undefined || old?.timeZone === zone) return
  const odd = (part: string): boolean => part === '.' || part === '..' || part.startsWith('-') || !zonePart.test(part)
  if (zone === '') {
    report.invalid('timeZone', zone, 'timeZone must be nil or non-empty string')
    return
  }
  if (zone.split('/').some(odd)) {
    report.invalid('timeZone', zone, `unknown time zone ${zone}`)
    return
  }
  if (zone.toLowerCase() === 'local')
    report.invalid(
      'timeZone',
      zone,
      'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    )
  const wrong = locationError(zone)
  if (wrong !== undefined) report.invalid('timeZone', zone, wrong)
}

const jobTemplate: Rule<Data<V1JobTemplateSpec>> = ({ spec = { template: {} } }, report) => {
  report.at('spec', jobSpec, spec)
  if (spec.selector !== undefined)
    report.invalidStruct('spec.selector', 'v1.LabelSelector', spec.selector, '`selector` will be auto-generated')
  if (spec.manualSelector === true) report.notSupported('spec.manualSelector', true, ['nil', 'false'])
}

const specRule = all<Spec, Old>(
  schedule,
  fields<Spec>({ startingDeadlineSeconds: nonNegative }),
  timeZoneRule,
  fields<Spec>({
    concurrencyPolicy: required(oneOf(['Allow', 'Forbid', 'Replace'])),
    jobTemplate,
    successfulJobsHistoryLimit: nonNegative,
    failedJobsHistoryLimit: nonNegative,
  }),
)
/** The names of its Jobs are 11 characters longer. */
const nameRule = must(
  (name: string) => name.length <= maxNameLength,
  `must be no more than ${maxNameLength} characters`,
)

/** As upstream, whose path has `spec` twice. */
const zoneInSchedule =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details'
const specOf = (object: KubeObject): Spec => object['spec'] as Spec

export const cronJobRules: KindRules = {
  warningsOf(object, old) {
    const { schedule: text, jobTemplate: template } = specOf(object)
    const same = isSameSpec(object, old)
    return [
      ...(old === undefined ? podOwnerNameWarnings(object) : []),
      ...(same ? [] : jobSpecWarnings('spec.jobTemplate.spec', template.spec)),
      ...(old !== undefined && text.includes('TZ') ? [zoneInSchedule] : []),
    ]
  },
  validate: validating<ObjectOf<Spec>>(({ metadata, spec }, report, old) => {
    report.at('spec', specRule, spec, old?.spec)
    if (old === undefined) report.at('metadata.name', nameRule, metadata.name)
  }),
}
