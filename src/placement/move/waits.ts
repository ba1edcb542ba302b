// The wait of each copy: its gate, its begin, its deadline, and the next step after it. Pure.
import type { PlacedCopy, PlacedOn } from '#crds/index.ts'
import type { CopySeen, MoveInput, Rejection } from './move-input.ts'
import { guards, type Gate } from './guards.ts'
import type { Transition, Wait } from './transitions.ts'

/** The copy with what it waits for; the same object if it says so already. */
export function withWait(
  name: string,
  copy: PlacedCopy,
  pending: Transition | undefined,
  input: MoveInput,
): PlacedCopy {
  const { wait: before, ...rest } = copy
  const seen = input.seen(name)
  const gate = pending?.gates.find((one) => !guards[one].met({ name, before: copy, seen }, input))
  if (pending?.wait === undefined || gate === undefined) return before === undefined ? copy : rest
  const isOfVolumes = gatesOfVolumes.includes(gate) || (gatesBefore.includes(gate) && isForVolumes(input))
  const detail = isOfVolumes ? input.volumes?.progress : undefined
  const until = isOfVolumes
    ? undefined
    : deadlineOf(name, pending.wait, before?.gate === gate ? before.since : undefined, input)
  if (before?.gate === gate && before.until === until && before.detail === detail) return copy
  const since = before?.gate === gate ? before.since : timeOf(input.now)
  const then = until === undefined ? 'Waits' : pending.wait.then
  return {
    ...rest,
    wait: { gate, since, ...(until !== undefined && { until }), then, ...(detail !== undefined && { detail }) },
  }
}

/** Gates of data that is copied, which takes as long as it takes. */
const gatesOfVolumes: readonly Gate[] = ['VolumesCopied', 'VolumesHere']
/** Gates at which a copy waits as long as another one waits for the data. */
const gatesBefore: readonly Gate[] = ['NothingElsewhere', 'OrdinalFree', 'OrdinalsMoved']

/** Whether data has to move to a wanted member. */
function isForVolumes({ volumes, decision: { wanted } }: MoveInput): boolean {
  if (volumes === undefined || wanted.kind !== 'members') return false
  return [...volumes.in, ...(volumes.unknownIn ? [volumes.unknownIn] : [])].some((name) => !wanted.names.includes(name))
}

function deadlineOf(
  name: string,
  { seconds, then }: Wait,
  since: string | undefined,
  input: MoveInput,
): string | undefined {
  if (then === 'StartsElsewhere') {
    const at = input.seen(name).lost?.failoverAtMs
    return at === undefined ? undefined : timeOf(at)
  }
  return timeOf((since === undefined ? input.now : Date.parse(since)) + seconds(input) * 1000)
}

/** The waits whose time is over and that are Held then, in words for the tenant. */
export function overdue(placedOn: PlacedOn, { now, seen }: Pick<MoveInput, 'now' | 'seen'>): Rejection[] {
  return Object.entries(placedOn).flatMap(([cluster, { wait }]) => {
    if (wait?.then !== 'Held' || wait.until === undefined || Date.parse(wait.until) > now) return []
    const message = `in member cluster "${cluster}" it has waited since ${wait.since} for ${waitText(wait.gate, seen(cluster))}`
    return [{ cluster, reason: 'MoveStalled', message }]
  })
}

/** The wait of a gate, in words, with the member's reason if there is one. */
export function waitText(gate: string, { problem }: Pick<CopySeen, 'problem'>): string {
  const text = Object.hasOwn(guards, gate) ? guards[gate as keyof typeof guards].waitsFor : gate
  return problem !== undefined && ofMember.includes(gate) ? `${text}: ${problem}` : text
}

/** Gates at which the member has the word. */
const ofMember: readonly string[] = ['SpecObserved', 'RolloutComplete'] satisfies readonly Gate[]

/** In how many milliseconds the first wait is over; undefined if none ends by time. */
export function nextDeadlineMs(placedOn: PlacedOn, now: number): number | undefined {
  const ends = Object.values(placedOn)
    .filter(({ wait }) => wait?.then === 'Held')
    .map(({ wait }) => Date.parse(wait?.until ?? '') - now)
    .filter((ms) => ms > 0)
  return ends.length === 0 ? undefined : Math.min(...ends)
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
