// Validation of the status of a Job: counters must be consistent, and terminal conditions are final. Most rules apply
// only to members that change, so that a status stored by an older version does not block updates.
import { isDeepStrictEqual } from 'node:util'
import type { V1JobSpec, V1JobStatus } from '@kubernetes/client-node'
import { fieldDuplicate, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fieldImmutable, nonNegative } from '#virtualapi/kinds/validation/values.ts'
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

const counters = ['active', 'succeeded', 'failed', 'ready', 'terminating'] as const

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

/** An Invalid error about the conditions that prints no value. */
const wrong = (message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${message}`,
  field: 'status.conditions',
})

/** Validation errors of an update through the subresource `status`. */
export function jobStatusCauses(object: KubeObject, before: KubeObject): StatusCause[] {
  const [next, old] = [stateOf(object), stateOf(before)]
  const changed = (member: Member): boolean => !isDeepStrictEqual(next.status[member], old.status[member])
  const flipped = (...members: ('complete' | 'failed' | 'failing' | 'met')[]): boolean =>
    members.some((member) => next[member] !== old[member])
  return [
    ...counters.flatMap((member) => nonNegative(`status.${member}`, next.status[member])),
    ...uncountedCauses(next.status),
    ...endCauses(next, changed, flipped),
    ...indexCauses(next, changed),
    ...countCauses(next, changed, isFinished(next) !== isFinished(old)),
    ...metCauses(next),
    ...changeCauses(next, old, object, before),
  ]
}

const isFinished = ({ complete, failed }: JobState): boolean => complete || failed

function uncountedCauses({ uncountedTerminatedPods: uncounted }: Status): StatusCause[] {
  const seen = new Set<string>()
  return (['succeeded', 'failed'] as const).flatMap((member) =>
    (uncounted?.[member] ?? []).flatMap((uid, index) => {
      const at = `status.uncountedTerminatedPods.${member}[${index}]`
      if (uid === '') return [fieldInvalid(at, uid, 'must not be empty')]
      if (seen.has(uid)) return [fieldDuplicate(at, uid)]
      seen.add(uid)
      return []
    }),
  )
}

type Changed = (member: Member) => boolean
type Flipped = (...members: ('complete' | 'failed' | 'failing' | 'met')[]) => boolean

/** A Job ends once, after a preparing condition, and with a completion time. */
function endCauses(
  { status, complete, failed, failing, met }: JobState,
  changed: Changed,
  flipped: Flipped,
): StatusCause[] {
  const { completionTime: end, startTime: start } = status
  const at = 'status.completionTime'
  const causes: StatusCause[] = []
  if (complete && failed && flipped('complete', 'failed'))
    causes.push(wrong('cannot set Complete=True and Failed=true conditions'))
  if (complete && failing && flipped('complete', 'failing'))
    causes.push(wrong('cannot set Complete=True and FailureTarget=true conditions'))
  if (flipped('complete') || changed('completionTime')) {
    if (end !== undefined && !complete)
      causes.push(fieldInvalid(at, end, 'cannot set completionTime when there is no Complete=True condition'))
    if (end === undefined && complete) causes.push(fieldRequired(at, 'completionTime is required for Complete jobs'))
  }
  if (end !== undefined && start !== undefined && end < start && (changed('startTime') || changed('completionTime')))
    causes.push(fieldInvalid(at, end, 'must be equal to or after `startTime`'))
  if (failed && !failing && (flipped('failed') || changed('failedIndexes')))
    causes.push(wrong('cannot set Failed=True condition without the FailureTarget=true condition'))
  if (complete && !met && flipped('complete', 'met'))
    causes.push(wrong('cannot set Complete=True condition without the SuccessCriteriaMet=true condition'))
  return causes
}

function countCauses(state: JobState, changed: Changed, justFinished: boolean): StatusCause[] {
  const { status, spec } = state
  const { active = 0, ready, terminating, uncountedTerminatedPods: uncounted, startTime } = status
  const causes: StatusCause[] = []
  if (isFinished(state)) {
    const idle = spec.suspend === true && spec.completions === 0
    if (active > 0 && (justFinished || changed('active')))
      causes.push(fieldInvalid('status.active', active, 'active>0 is invalid for finished job'))
    if (startTime === undefined && (justFinished || changed('startTime')) && !idle)
      causes.push(fieldRequired('status.startTime', 'startTime is required for finished job'))
    const left = (uncounted?.failed ?? []).length + (uncounted?.succeeded ?? []).length
    if (left > 0 && (justFinished || changed('uncountedTerminatedPods')))
      causes.push(
        fieldInvalid(
          'status.uncountedTerminatedPods',
          { Succeeded: uncounted?.succeeded ?? null, Failed: uncounted?.failed ?? null },
          'must be empty for finished job',
        ),
      )
    if ((terminating ?? 0) > 0 && (justFinished || changed('terminating')))
      causes.push(fieldInvalid('status.terminating', terminating ?? 0, 'terminating>0 is invalid for finished job'))
  }
  if (ready !== undefined && ready > active && (changed('ready') || changed('active')))
    causes.push(fieldInvalid('status.ready', ready, 'cannot set more ready pods than active'))
  return causes
}

function indexCauses({ status, spec }: JobState, changed: Changed): StatusCause[] {
  const { completedIndexes: done = '', failedIndexes: failed } = status
  const { completions, backoffLimitPerIndex: limit, completionMode } = spec
  const [newlyDone, newlyFailed] = [changed('completedIndexes'), changed('failedIndexes')]
  const [at, failedAt] = ['status.completedIndexes', 'status.failedIndexes']
  const read = (field: string, text: string): StatusCause[] => {
    const indexes = parseIndexes(text, completions ?? 0)
    const name = field.slice('status.'.length)
    return 'error' in indexes ? [fieldInvalid(field, text, `error parsing ${name}: ${indexes.error}`)] : []
  }
  const causes: StatusCause[] = []
  if (newlyDone && completions !== undefined) causes.push(...read(at, done))
  if (newlyFailed && completions !== undefined && limit !== undefined && failed !== undefined)
    causes.push(...read(failedAt, failed))
  if (newlyDone && done !== '' && completionMode !== 'Indexed')
    causes.push(fieldInvalid(at, done, 'cannot set non-empty completedIndexes when non-indexed completion mode'))
  if (newlyFailed && limit === undefined && failed !== undefined)
    causes.push(fieldInvalid(failedAt, failed, 'cannot set non-null failedIndexes when backoffLimitPerIndex is null'))
  if ((newlyDone || newlyFailed) && completions !== undefined && failed !== undefined) {
    const shared = firstCommonIndex(done, failed, completions)
    if (shared !== undefined)
      causes.push(fieldInvalid(failedAt, failed, `failedIndexes and completedIndexes overlap at index: ${shared}`))
  }
  return causes
}

function metCauses({ spec, complete, failed, failing, met }: JobState): StatusCause[] {
  return [
    ...(met && failed ? [wrong('cannot set SuccessCriteriaMet=True and Failed=true conditions')] : []),
    ...(met && failing ? [wrong('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions')] : []),
    ...(spec.successPolicy !== undefined && !met && complete
      ? [wrong('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True')]
      : []),
  ]
}

/** Terminal conditions stay, counters do not decrease, and times do not change. */
function changeCauses(next: JobState, old: JobState, object: KubeObject, before: KubeObject): StatusCause[] {
  const causes: StatusCause[] = []
  for (const [type, member] of Object.entries({
    Failed: 'failed',
    Complete: 'complete',
    FailureTarget: 'failing',
  } as const))
    if (old[member] && !next[member]) causes.push(wrong(`cannot disable the terminal ${type}=True condition`))
  const { spec, status } = next
  const mayShrink = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism
  for (const member of mayShrink ? (['failed'] as const) : (['failed', 'succeeded'] as const))
    if ((status[member] ?? 0) < (old.status[member] ?? 0))
      causes.push(fieldInvalid(`status.${member}`, status[member] ?? 0, `cannot decrease the ${member} counter`))
  const { completionTime, startTime } = old.status
  if (completionTime !== undefined && status.completionTime !== undefined && status.completionTime !== completionTime)
    causes.push(fieldInvalid('status.completionTime', status.completionTime, fieldImmutable))
  if (startTime !== undefined && status.startTime !== startTime && spec.suspend !== true && !resumes(object, before))
    causes.push(fieldRequired('status.startTime', 'startTime cannot be removed for unsuspended job'))
  if (old.met && !next.met) causes.push(wrong('cannot disable the SuccessCriteriaMet=True condition'))
  if (old.complete && !old.met && next.met)
    causes.push(wrong('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions'))
  return causes
}

/** True if this update changes the condition Suspended from True to False. */
function resumes(object: KubeObject, before: KubeObject): boolean {
  const suspended = ({ status }: KubeObject): string | undefined =>
    ((status as Status | undefined)?.conditions ?? []).find(({ type }) => type === 'Suspended')?.status
  return suspended(before) === 'True' && suspended(object) === 'False'
}
