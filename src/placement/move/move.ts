// The move engine: one transition function, whatever the cause of a move. From what each member reports it computes the
// next decision, by the table of transitions alone. Pure: the caller brings the time and waits.
import { hasCopy, type PlacedCopy, type PlacedOn, type WorkloadKind, workloadKindOfObject } from '#crds/index.ts'
import { guards, missingAddressesMs } from './guards.ts'
import { type Copy, type CopySeen, elapsedMs, type MoveInput, type Rejection, type Role } from './move-input.ts'
import { nextShares } from './shares.ts'
import { transitions, type StateOrNone, type Transition } from './transitions.ts'
import { nextDeadlineMs, overdue, withWait } from './waits.ts'
import { mapCopies, withdrawalWaitMs } from './withdrawal.ts'

export interface MoveStep {
  readonly placedOn: PlacedOn
  /** Waits that have lasted too long: old copies stay as they are. */
  readonly stalled: readonly Rejection[]
  /** In how many milliseconds the passing of time alone changes the result; absent: it does not. */
  readonly requeueAfterMs?: number
}

/** The limit of transitions in one call: a chain of transitions that need no new report is shorter. */
const maxSteps = 12

/** The next decision. Calling it again with its own result changes nothing. */
export function move(given: MoveInput): MoveStep {
  let current = given.placedOn
  for (let i = 0; i < maxSteps; i++) {
    const next = transition({ ...given, placedOn: current, seen: seenOf(given, current) })
    if (next === current) break
    current = next
  }
  const input = { ...given, placedOn: current, seen: seenOf(given, current) }
  const placedOn = mapCopies(current, (copy, name) =>
    withPause(withWait(name, copy, pendingOf(name, copy, input), input), input),
  )
  const waits = [
    ...Object.entries(placedOn).flatMap(([name, copy]) => [waitMs(name, copy, input), withdrawalWaitMs(copy, input)]),
    nextDeadlineMs(placedOn, given.now),
  ]
  const known = waits.filter((ms) => ms !== undefined)
  return {
    placedOn,
    stalled: overdue(placedOn, input),
    ...(known.length > 0 && { requeueAfterMs: Math.min(...known) }),
  }
}

/** Reports of members are about the replicas that they had before this decision. */
function seenOf({ placedOn, seen }: MoveInput, current: PlacedOn): (member: string) => CopySeen {
  return (member) => {
    const [before, now] = [placedOn[member], current[member]]
    const isPausedAlike = now?.start === undefined || before?.paused === now.paused
    const isSame = before?.replicas === now?.replicas && before?.start === now?.start && isPausedAlike
    return isSame ? seen(member) : { ...seen(member), observed: false, available: false, published: false }
  }
}

/** At most one transition per copy; the same object if nothing changes. */
export function transition(input: MoveInput): PlacedOn {
  const { wanted, held } = input.decision
  const named = wanted.kind === 'members' ? wanted.names : []
  const refused = held.map(({ cluster }) => cluster).filter((cluster) => cluster !== '')
  const names = [...new Set([...Object.keys(input.placedOn), ...named, ...refused])].sort()
  const next: Record<string, PlacedCopy> = {}
  let changed = false
  for (const name of names) {
    const before = input.placedOn[name]
    const after = afterOne(name, before, input)
    if (after !== before) changed = true
    if (after !== undefined) next[name] = after
  }
  return nextShares(changed ? next : input.placedOn, { ...input, placedOn: changed ? next : input.placedOn })
}

function afterOne(name: string, before: PlacedCopy | undefined, input: MoveInput): PlacedCopy | undefined {
  const copy: Copy = { name, before, seen: input.seen(name) }
  const taken = rowsFor(copy, input).find(({ gates }) => gates.every((gate) => guards[gate].met(copy, input)))
  if (taken === undefined) return before
  if (taken.to === 'None') return undefined
  if (taken.to === 'Held') return hold(name, before, input)
  const { replicas, start, paused } = before ?? {}
  const keepsShare = taken.to !== 'Assumed'
  return {
    state: taken.to,
    since: timeOf(input),
    ...(keepsShare && replicas !== undefined && { replicas }),
    ...(keepsShare && start !== undefined && { start, ...(paused && { paused }) }),
  }
}

function rowsFor({ name, before }: Copy, input: MoveInput): readonly Transition[] {
  const state: StateOrNone = before?.state ?? 'None'
  const role = roleOf(name, input)
  const { strategy = 'makeBeforeBreak' } = input
  return transitions.filter(
    ({ from, roles, strategies }) =>
      from.includes(state) && roles?.includes(role) !== false && strategies?.includes(strategy) !== false,
  )
}

/** The transition that the copy waits for. */
function pendingOf(name: string, copy: PlacedCopy, input: MoveInput): Transition | undefined {
  return rowsFor({ name, before: copy, seen: input.seen(name) }, input).find(({ wait }) => wait !== undefined)
}

function roleOf(name: string, { decision: { wanted, held } }: MoveInput): Role {
  if (wanted.kind === 'members' && wanted.names.includes(name)) return 'wanted'
  return held.some(({ cluster }) => cluster === name) ? 'refused' : 'leaving'
}

/** The held copy. A copy is Held only while the member has none. */
function hold(name: string, before: PlacedCopy | undefined, input: MoveInput): PlacedCopy {
  const { reason = '', message = '' } = input.decision.held.find(({ cluster }) => cluster === name) ?? {}
  if (before?.state === 'Held' && before.reason === reason && before.message === message) return before
  return { state: 'Held', since: timeOf(input), reason, message }
}

function timeOf({ now }: MoveInput): string {
  return new Date(now).toISOString()
}

/** In how many milliseconds the passing of time alone may change the state of a copy. */
function waitMs(name: string, copy: PlacedCopy, input: MoveInput): number | undefined {
  const elapsed = elapsedMs(copy, input)
  if (copy.state === 'Draining') {
    const limit = input.drainSeconds * 1000
    return Math.max(50, elapsed < limit ? limit - elapsed : limit * 3 - elapsed)
  }
  if (copy.state === 'Forwarding') return Math.max(50, (input.forwardSeconds ?? 0) * 1000 - elapsed)
  if (copy.state === 'Serving' && elapsed < input.soakSeconds * 1000)
    return Math.max(50, input.soakSeconds * 1000 - elapsed)
  if (copy.wait?.gate === 'AddressesReplaced') return Math.max(50, missingAddressesMs(name, input))
  return undefined
}

/** Members with a copy, or that will get one next. */
export function currentMembers(placed: PlacedOn): string[] {
  return Object.entries(placed)
    .filter(([, copy]) => hasCopy(copy) || copy.state === 'Assumed')
    .map(([name]) => name)
    .sort()
}

/**
 * The copy, paused if another one is about to take its place; the same object if it says so already. The new copy has
 * the present template from its start: a rollout in the old one would end pods that serve, for pods that nobody needs.
 * A pause ends with the wait, so that a tenant can still change what runs where a move makes no progress.
 */
export function withPause(copy: PlacedCopy, { decision: { wanted, held }, now, strategy }: MoveInput): PlacedCopy {
  // See nextOrdinals.
  if (strategy === 'ordinalByOrdinal') return copy
  const { paused: before, ...rest } = copy
  const { gate = '', until = '' } = copy.wait ?? {}
  const isReplaced = wanted.kind === 'members' && held.length === 0
  const paused = isReplaced && gatesOfReplaced.includes(gate) && now < Date.parse(until)
  if (paused === (before ?? false)) return copy
  return paused ? { ...rest, paused } : rest
}

const gatesOfReplaced: readonly string[] = ['ReplacementServes', 'AddressesReplaced', 'NamespaceMayLeave']

/**
 * The move of the kind; a Deployment that recreates its pods, or whose volume has one writer, must not run in two
 * members at the same time.
 */
export function moveKindOf(
  workload: { readonly kind: string },
  { usesSingleWriterVolume }: { readonly usesSingleWriterVolume: boolean },
): WorkloadKind['move'] {
  const move = workloadKindOfObject(workload)?.move ?? 'makeBeforeBreak'
  if (move !== 'makeBeforeBreak') return move
  const { strategy } = ((workload as { spec?: unknown }).spec ?? {}) as { strategy?: { type?: string } }
  return strategy?.type === 'Recreate' || usesSingleWriterVolume ? 'breakBeforeMake' : move
}
