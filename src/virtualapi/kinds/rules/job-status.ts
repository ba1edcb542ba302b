// Validation of the status of a Job: counters must be consistent, and terminal conditions are final. Most rules apply
// only to members that change, so that a status stored by an older version does not block updates.
import { isDeepStrictEqual } from 'node:util'
import type { V1JobSpec, V1JobStatus } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { fieldImmutable, fields, type Report, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { parseIndexes, firstCommonIndex } from './job-indexes.ts'

type Status = Data<V1JobStatus>
type Member = keyof Status

interface JobState {
  readonly spec: Data<V1JobSpec>
  readonly status: Status
  readonly complete: boolean
  readonly failed: boolean
  readonly failing: boolean
  readonly met: boolean
}

const counters = fields<Status>({
  active: nonNegative,
  succeeded: nonNegative,
  failed: nonNegative,
  ready: nonNegative,
  terminating: nonNegative,
})

function stateOf(object: KubeObject): JobState {
  const status = (object['status'] as Status | undefined) ?? {}
  const is = (type: string, wanted = 'True'): boolean =>
    (status.conditions ?? []).some((one) => one.type === type && one.status === wanted)
  return {
    spec: object['spec'] as Data<V1JobSpec>,
    status,
    complete: is('Complete'),
    failed: is('Failed'),
    failing: is('FailureTarget'),
    met: is('SuccessCriteriaMet'),
  }
}

/** Reports an error about the conditions that prints no value. */
const wrong = (report: Report, message: string): void => report.invalidText('conditions', '', message)

/** An update through the subresource `status`, at the place of the status. */
export const jobStatus: Rule<KubeObject, KubeObject> = (object, report, before) => {
  const [next, old] = [stateOf(object), stateOf(before)]
  const changed = (member: Member): boolean => !isDeepStrictEqual(next.status[member], old.status[member])
  const flipped = (...members: ('complete' | 'failed' | 'failing' | 'met')[]): boolean =>
    members.some((member) => next[member] !== old[member])
  report.check(counters, next.status)
  checkUncounted(next.status, report)
  checkEnd(next, report, { changed, flipped })
  checkIndexes(next, report, changed)
  checkCounts(next, report, { changed, justFinished: isFinished(next) !== isFinished(old) })
  checkMet(next, report)
  checkChange(next, old, report, { resumes: isResumed(object, before) })
}

const isFinished = ({ complete, failed }: JobState): boolean => complete || failed

function checkUncounted({ uncountedTerminatedPods: uncounted }: Status, report: Report): void {
  const seen = new Set<string>()
  for (const member of ['succeeded', 'failed'] as const)
    for (const [index, uid] of (uncounted?.[member] ?? []).entries()) {
      const at = `uncountedTerminatedPods.${member}[${index}]`
      if (uid === '') report.invalid(at, uid, 'must not be empty')
      else if (seen.has(uid)) report.duplicate(at, uid)
      seen.add(uid)
    }
}

type Changed = (member: Member) => boolean
type Flipped = (...members: ('complete' | 'failed' | 'failing' | 'met')[]) => boolean

/** A Job ends once, after a preparing condition, and with a completion time. */
function checkEnd(
  { status, complete, failed, failing, met }: JobState,
  report: Report,
  { changed, flipped }: { changed: Changed; flipped: Flipped },
): void {
  const { completionTime: end, startTime: start } = status
  const at = 'completionTime'
  if (complete && failed && flipped('complete', 'failed'))
    wrong(report, 'cannot set Complete=True and Failed=true conditions')
  if (complete && failing && flipped('complete', 'failing'))
    wrong(report, 'cannot set Complete=True and FailureTarget=true conditions')
  if (flipped('complete') || changed('completionTime')) {
    if (end !== undefined && !complete)
      report.invalid(at, end, 'cannot set completionTime when there is no Complete=True condition')
    if (end === undefined && complete) report.required(at, 'completionTime is required for Complete jobs')
  }
  if (end !== undefined && start !== undefined && end < start && (changed('startTime') || changed('completionTime')))
    report.invalid(at, end, 'must be equal to or after `startTime`')
  if (failed && !failing && (flipped('failed') || changed('failedIndexes')))
    wrong(report, 'cannot set Failed=True condition without the FailureTarget=true condition')
  if (complete && !met && flipped('complete', 'met'))
    wrong(report, 'cannot set Complete=True condition without the SuccessCriteriaMet=true condition')
}

function checkCounts(
  state: JobState,
  report: Report,
  { changed, justFinished }: { changed: Changed; justFinished: boolean },
): void {
  const { status, spec } = state
  const { active = 0, ready, terminating, uncountedTerminatedPods: uncounted, startTime } = status
  if (isFinished(state)) {
    const idle = spec.suspend === true && spec.completions === 0
    if (active > 0 && (justFinished || changed('active')))
      report.invalid('active', active, 'active>0 is invalid for finished job')
    if (startTime === undefined && (justFinished || changed('startTime')) && !idle)
      report.required('startTime', 'startTime is required for finished job')
    const left = (uncounted?.failed ?? []).length + (uncounted?.succeeded ?? []).length
    if (left > 0 && (justFinished || changed('uncountedTerminatedPods')))
      report.invalid(
        'uncountedTerminatedPods',
        { Succeeded: uncounted?.succeeded ?? null, Failed: uncounted?.failed ?? null },
        'must be empty for finished job',
      )
    if ((terminating ?? 0) > 0 && (justFinished || changed('terminating')))
      report.invalid('terminating', terminating ?? 0, 'terminating>0 is invalid for finished job')
  }
  if (ready !== undefined && ready > active && (changed('ready') || changed('active')))
    report.invalid('ready', ready, 'cannot set more ready pods than active')
}

function checkIndexes({ status, spec }: JobState, report: Report, changed: Changed): void {
  const { completedIndexes: done = '', failedIndexes: failed } = status
  const { completions, backoffLimitPerIndex: limit, completionMode } = spec
  const [newlyDone, newlyFailed] = [changed('completedIndexes'), changed('failedIndexes')]
  const [at, failedAt] = ['completedIndexes', 'failedIndexes']
  const read = (field: string, text: string): void => {
    const indexes = parseIndexes(text, completions ?? 0)
    if ('error' in indexes) report.invalid(field, text, `error parsing ${field}: ${indexes.error}`)
  }
  if (newlyDone && completions !== undefined) read(at, done)
  if (newlyFailed && completions !== undefined && limit !== undefined && failed !== undefined) read(failedAt, failed)
  if (newlyDone && done !== '' && completionMode !== 'Indexed')
    report.invalid(at, done, 'cannot set non-empty completedIndexes when non-indexed completion mode')
  if (newlyFailed && limit === undefined && failed !== undefined)
    report.invalid(failedAt, failed, 'cannot set non-null failedIndexes when backoffLimitPerIndex is null')
  if ((newlyDone || newlyFailed) && completions !== undefined && failed !== undefined) {
    const shared = firstCommonIndex(done, failed, completions)
    if (shared !== undefined)
      report.invalid(failedAt, failed, `failedIndexes and completedIndexes overlap at index: ${shared}`)
  }
}

function checkMet({ spec, complete, failed, failing, met }: JobState, report: Report): void {
  if (met && failed) wrong(report, 'cannot set SuccessCriteriaMet=True and Failed=true conditions')
  if (met && failing) wrong(report, 'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions')
  if (spec.successPolicy !== undefined && !met && complete)
    wrong(report, 'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True')
}

/** Terminal conditions stay, counters do not decrease, and times do not change. */
function checkChange(next: JobState, old: JobState, report: Report, { resumes }: { resumes: boolean }): void {
  for (const [type, member] of Object.entries({
    Failed: 'failed',
    Complete: 'complete',
    FailureTarget: 'failing',
  } as const))
    if (old[member] && !next[member]) wrong(report, `cannot disable the terminal ${type}=True condition`)
  const { spec, status } = next
  const mayShrink = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism
  for (const member of mayShrink ? (['failed'] as const) : (['failed', 'succeeded'] as const))
    if ((status[member] ?? 0) < (old.status[member] ?? 0))
      report.invalid(member, status[member] ?? 0, `cannot decrease the ${member} counter`)
  const { completionTime, startTime } = old.status
  if (completionTime !== undefined && status.completionTime !== undefined && status.completionTime !== completionTime)
    report.invalid('completionTime', status.completionTime, fieldImmutable)
  if (startTime !== undefined && status.startTime !== startTime && spec.suspend !== true && !resumes)
    report.required('startTime', 'startTime cannot be removed for unsuspended job')
  if (old.met && !next.met) wrong(report, 'cannot disable the SuccessCriteriaMet=True condition')
  if (old.complete && !old.met && next.met)
    wrong(report, 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions')
}

/** True if this update changes the condition Suspended from True to False. */
function isResumed(object: KubeObject, before: KubeObject): boolean {
  const suspended = ({ status }: KubeObject): string | undefined =>
    ((status as Status | undefined)?.conditions ?? []).find(({ type }) => type === 'Suspended')?.status
  return suspended(before) === 'True' && suspended(object) === 'False'
}
