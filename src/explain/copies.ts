// The copies of a workload, from the scheduler's record: which member has it, in which state, and what it waits for.
import type { CopyState } from '#crds/index.ts'
import {
  listOf,
  recordOf,
  sinceOf,
  type Finding,
  type FindingState,
  type SeenObject,
  textOf,
  todoIf,
} from './finding.ts'
import type { Subject } from './finding.ts'
import { gateText, remedyOf } from './remedies.ts'

/** The annotations of kcp that explanations read. `src/crds/sync-contract.ts` says who writes them. */
export const placedOnAnnotation = 'kcp.dev/placed-on'
export const heldAnnotation = 'kcp.dev/held'
export const historyAnnotation = 'kcp.dev/placement-history'
export const memberStatusPrefix = 'status.kcp.dev/'
export const memberAnnotation = 'kcp.dev/member'

/** A copy as the record has it. */
export interface SeenCopy {
  readonly member: string
  readonly state: CopyState
  readonly since?: string
  readonly reason?: string
  readonly message?: string
  readonly replicas?: number
  readonly wait?: { readonly gate: string; readonly since: string; readonly until?: string; readonly then: string }
}

/** The copies in the scheduler's record; none if the annotation is absent or not valid. */
export function copiesOf(object: SeenObject): readonly SeenCopy[] {
  return Object.entries(parsed(object, placedOnAnnotation)).map(
    ([member, copy]) => ({ member, ...recordOf(copy) }) as unknown as SeenCopy,
  )
}

/** A move in the history of a workload. */
export interface SeenMove {
  /** RFC 3339. */
  readonly time: string
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly cause: string
  readonly message: string
}

/** The moves in the history, the newest first. */
export function movesOf(object: SeenObject): readonly SeenMove[] {
  return listOf(parsedValue(object, historyAnnotation)).map((entry) => {
    const { time, from, to, cause, message } = recordOf(entry)
    const names = (value: unknown): string[] => listOf(value).map(textOf)
    return { time: textOf(time), from: names(from), to: names(to), cause: textOf(cause), message: textOf(message) }
  })
}

/** One finding for each copy. */
export function copyFindings(object: SeenObject, subject: Subject, nowMs: number): Finding[] {
  return copiesOf(object).map((copy) => copyFinding(copy, subject, nowMs))
}

function copyFinding(
  { member, state, since, reason, message, replicas, wait }: SeenCopy,
  subject: Subject,
  nowMs: number,
): Finding {
  const share = replicas === undefined ? '' : `, ${replicas} replicas`
  const told = message === undefined ? '' : `: ${message}`
  const base = {
    subject,
    what: `copy in ${member} is ${state}${share}${told}`,
    ...(reason !== undefined && { reason }),
  }
  const known = reason === undefined ? undefined : remedyOf(reason)
  if (wait === undefined) return { ...base, state: quietState(state), ...sinceOf(since), ...todoIf(known) }
  const { waitsFor, todo } = gateText(wait.gate)
  const isOver = wait.until !== undefined && Date.parse(wait.until) <= nowMs
  const isUrgent = urgentStates.includes(state) || (isOver && wait.then === 'Held')
  return {
    ...base,
    state: isUrgent ? 'wrong' : 'waits',
    since: wait.since,
    waitsFor: `${waitsFor} (${wait.gate})`,
    ...(wait.until !== undefined && { until: wait.until, then: thenTexts[wait.then] ?? wait.then }),
    ...todoIf((known ?? todo)?.replace('MEMBER', member)),
  }
}

const urgentStates: readonly CopyState[] = ['Held', 'Lost']

/** The urgency of a copy that waits for nothing. A newer release may write states that this one does not know. */
function quietState(state: CopyState): FindingState {
  return Object.hasOwn(quietStates, state) ? quietStates[state] : 'note'
}

const quietStates: Readonly<Record<CopyState, FindingState>> = {
  Assumed: 'waits',
  Syncing: 'waits',
  Applied: 'waits',
  Available: 'waits',
  Serving: 'well',
  Draining: 'waits',
  Forwarding: 'waits',
  Terminating: 'waits',
  Held: 'wrong',
  Lost: 'wrong',
  Fenced: 'note',
}

const thenTexts: Readonly<Record<string, string>> = {
  Held: 'the old copy stays, and condition Placed says MoveStalled',
  Removed: 'the copy is removed',
  StartsElsewhere: 'it starts in another member',
}

/** The last move, as a note. */
export function moveNote(object: SeenObject, subject: Subject): Finding[] {
  const [last] = movesOf(object)
  if (last === undefined) return []
  const from = last.from.length === 0 ? '' : ` from ${last.from.join(', ')}`
  const to = last.to.length === 0 ? ' to no member' : ` to ${last.to.join(', ')}`
  const why = last.message === '' ? '' : `: ${last.message}`
  return [{ subject, state: 'note', what: `last move${from}${to}, cause ${last.cause}${why}`, ...sinceOf(last.time) }]
}

/** What members refuse, and what others have changed there, in the words of the members. */
export function refusalFindings(object: SeenObject, subject: Subject): Finding[] {
  return Object.keys(object.metadata.annotations ?? {}).flatMap((name): Finding[] => {
    if (!name.startsWith(memberStatusPrefix)) return []
    const { error, drift } = parsed(object, name)
    const member = name.slice(memberStatusPrefix.length)
    const of = (reason: 'SyncFailed' | 'Drifted', state: FindingState, what: string): Finding => ({
      ...{ subject, state, reason, what },
      ...todoIf(remedyOf(reason)),
    })
    return [
      ...(typeof error === 'string' ? [of('SyncFailed', 'wrong', `member ${member} refuses it: ${error}`)] : []),
      ...(typeof drift === 'string' ? [of('Drifted', 'note', `changed in member ${member}: ${drift}`)] : []),
    ]
  })
}

function parsed(object: SeenObject, annotation: string): Readonly<Record<string, unknown>> {
  return recordOf(parsedValue(object, annotation))
}

function parsedValue({ metadata }: SeenObject, annotation: string): unknown {
  try {
    // eslint-disable-next-line no-restricted-properties -- also runs in browsers, and reads no number that is so large
    return JSON.parse(metadata.annotations?.[annotation] ?? 'null') as unknown
  } catch {
    return undefined
  }
}
