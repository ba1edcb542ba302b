// The move engine: one transition function, whatever the cause of a move. From what each member reports it computes the next
// decision; a new copy serves before an old one is removed. Pure: the caller brings the time and waits.
import { hasCopy, type CopyState, type PlacedCopy, type PlacedOn } from '../crds/index.ts'
import type { Decision } from './choose.ts'

/** What is known about one copy. */
export interface CopySeen {
  /** The member's controller has processed the present spec. */
  readonly observed: boolean
  /** The rollout of the present spec is complete. Implies observed. */
  readonly available: boolean
  /** Its ready endpoints are known in every member that can reach them. */
  readonly published: boolean
  /** No member knows an endpoint of it. */
  readonly endpointsGone: boolean
  /** The member's syncer has confirmed that nothing of it is left. */
  readonly gone: boolean
}

export interface MoveInput {
  readonly now: number
  readonly placedOn: PlacedOn
  readonly decision: Decision
  readonly seen: (member: string) => CopySeen
  /** Whether the copy may drain: without a flat network, a namespace leaves a member as a whole. */
  readonly mayDrain: (member: string) => boolean
  readonly drainSeconds: number
  /** How long a copy must be Serving before another one drains. */
  readonly soakSeconds: number
}

export interface MoveStep {
  readonly placedOn: PlacedOn
  /** When the passing of time alone changes the result. */
  readonly requeueAfterMs?: number
}

/** The next decision. Calling it again with its own result changes nothing. */
export function move(input: MoveInput): MoveStep {
  let current = input.placedOn
  // There are eight states, so a chain of transitions is shorter than this.
  for (let i = 0; i < 8; i++) {
    const next = transition({ ...input, placedOn: current })
    if (next === current) break
    current = next
  }
  const waits = Object.values(current)
    .map((copy) => waitOf(copy, input))
    .filter((ms) => ms !== undefined)
  return { placedOn: current, ...(waits.length > 0 && { requeueAfterMs: Math.min(...waits) }) }
}

/** At most one transition per copy; the same object if nothing changes. */
export function transition(input: MoveInput): PlacedOn {
  const { decision } = input
  const wanted = new Set(decision.wanted.kind === 'members' ? decision.wanted.names : [])
  const held = new Map(
    decision.held.filter(({ cluster }) => cluster !== '').map((rejection) => [rejection.cluster, rejection]),
  )
  const names = [...new Set([...Object.keys(input.placedOn), ...wanted, ...held.keys()])].sort()
  const next: Record<string, PlacedCopy> = {}
  let changed = false
  for (const name of names) {
    const before = input.placedOn[name]
    const rejection = held.get(name)
    let after: PlacedCopy | undefined
    if (wanted.has(name)) after = advance(before, name, input)
    // Held means that there is no copy, so an existing copy never becomes Held.
    else if (rejection && (before === undefined || before.state === 'Held' || before.state === 'Assumed'))
      after = hold(before, rejection, input)
    // The member is wanted and cannot take the copy now: existing copies stay as they are.
    else if (rejection && before?.state !== 'Terminating' && before?.state !== 'Draining') after = before
    else after = withdraw(before, name, input)
    if (after !== before) changed = true
    if (after !== undefined) next[name] = after
  }
  return changed ? next : input.placedOn
}

function advance(before: PlacedCopy | undefined, name: string, input: MoveInput): PlacedCopy {
  const seen = input.seen(name)
  if (before === undefined) return enter('Assumed', input)
  switch (before.state) {
    case 'Held':
      return enter('Assumed', input)
    case 'Assumed':
      return enter('Syncing', input)
    case 'Syncing':
      return seen.observed ? enter('Applied', input) : before
    case 'Applied':
      return seen.available ? enter('Available', input) : before
    case 'Available':
      return seen.available && seen.published ? enter('Serving', input) : before
    case 'Serving':
      return before
    // Wanted again while it drains: it must prove again that it serves.
    case 'Draining':
      return enter('Available', input)
    // A copy that is being deleted cannot come back: it starts again when it is gone.
    case 'Terminating':
      return seen.gone ? enter('Assumed', input) : before
  }
}

function withdraw(before: PlacedCopy | undefined, name: string, input: MoveInput): PlacedCopy | undefined {
  if (before === undefined) return undefined
  const seen = input.seen(name)
  switch (before.state) {
    case 'Held':
    case 'Assumed':
      return undefined
    // It never took traffic, so it can go at once, unless nothing is decided: then it may be the only copy.
    case 'Syncing':
      if (seen.available) return replaced(name, input) && input.mayDrain(name) ? enter('Draining', input) : before
      return input.decision.wanted.kind === 'undecided' || input.decision.held.length > 0
        ? before
        : enter('Terminating', input)
    case 'Applied':
    case 'Available':
    case 'Serving':
      return replaced(name, input) && input.mayDrain(name) ? enter('Draining', input) : before
    case 'Draining': {
      if (!mayContinueDrain(name, input)) return enter('Available', input)
      const elapsed = elapsedMs(before, input)
      const drained =
        elapsed >= input.drainSeconds * 1000 && (seen.endpointsGone || elapsed >= input.drainSeconds * 3000)
      return drained ? enter('Terminating', input) : before
    }
    case 'Terminating':
      return seen.gone ? undefined : before
  }
}

/**
 * True if all wanted copies serve now, by what members report and not only by their state. With no wanted copy it is false,
 * unless somebody asked for no member.
 */
function replaced(name: string, input: MoveInput): boolean {
  const { wanted, held } = input.decision
  if (wanted.kind === 'none') return true
  if (wanted.kind === 'undecided' || held.length > 0) return false
  const others = wanted.names.filter((other) => other !== name)
  return others.length > 0 && others.every((other) => serves(other, input))
}

function serves(name: string, input: MoveInput): boolean {
  const copy = input.placedOn[name]
  if (copy?.state !== 'Serving' || elapsedMs(copy, input) < input.soakSeconds * 1000) return false
  const seen = input.seen(name)
  return seen.available && seen.published
}

/** Whether another copy still serves; if not, the drain is undone. */
function mayContinueDrain(name: string, input: MoveInput): boolean {
  if (input.decision.wanted.kind === 'none') return true
  return Object.entries(input.placedOn).some(
    ([other, copy]) => other !== name && copy.state === 'Serving' && input.seen(other).available,
  )
}

function hold(
  before: PlacedCopy | undefined,
  { reason, message }: { reason: string; message: string },
  input: MoveInput,
): PlacedCopy {
  if (before?.state === 'Held' && before.reason === reason && before.message === message) return before
  return { ...enter('Held', input), reason, message }
}

function enter(state: CopyState, { now }: { now: number }): PlacedCopy {
  return { state, since: new Date(now).toISOString() }
}

function elapsedMs(copy: PlacedCopy, { now }: { now: number }): number {
  const since = Date.parse(copy.since ?? '')
  return Number.isNaN(since) ? Number.MAX_SAFE_INTEGER : now - since
}

function waitOf(copy: PlacedCopy, input: MoveInput): number | undefined {
  const elapsed = elapsedMs(copy, input)
  if (copy.state === 'Draining') {
    const limit = input.drainSeconds * 1000
    return Math.max(50, elapsed < limit ? limit - elapsed : limit * 3 - elapsed)
  }
  if (copy.state === 'Serving' && elapsed < input.soakSeconds * 1000)
    return Math.max(50, input.soakSeconds * 1000 - elapsed)
  return undefined
}

/** Members with a copy, or that will get one next. */
export function currentMembers(placed: PlacedOn): string[] {
  return Object.entries(placed)
    .filter(([, copy]) => hasCopy(copy) || copy.state === 'Assumed')
    .map(([name]) => name)
    .sort()
}
