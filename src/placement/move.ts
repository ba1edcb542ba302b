// The move engine: one transition function for every cause. It sees what each member says and answers with the next
// decision; make before break. It never waits and never asks a clock: whoever calls it brings both.
import { hasCopy, type CopyState, type PlacedCopy, type PlacedOn } from '../crds/index.ts'
import type { Decision } from './choose.ts'

/** What is known of one member's copy. */
export interface CopySeen {
  /** The member has acted on the object's present generation. */
  readonly observed: boolean
  /** Its rollout is complete there. Implies observed. */
  readonly available: boolean
  /** Its ready endpoints are known wherever its Services are asked for. */
  readonly published: boolean
  /** No Service counts endpoints of it any more. */
  readonly endpointsGone: boolean
  /** The member has confirmed that nothing of it is left. */
  readonly gone: boolean
}

export interface MoveInput {
  readonly now: number
  readonly placedOn: PlacedOn
  readonly decision: Decision
  readonly seen: (member: string) => CopySeen
  /** The whole unit (the namespace, where pods of members can't reach each other) may let go of this copy. */
  readonly mayDrain: (member: string) => boolean
  readonly drainSeconds: number
  /** How long a copy has been Serving before another one drains. */
  readonly soakSeconds: number
}

export interface MoveStep {
  readonly placedOn: PlacedOn
  /** When time alone will change something. */
  readonly requeueAfterMs?: number
}

/** The next decision, as far as it can be taken now. Running it again on its own answer changes nothing. */
export function move(input: MoveInput): MoveStep {
  let current = input.placedOn
  // A life has eight states, so a chain of unguarded transitions ends well before this.
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

/** One transition per copy at most; the same object where nothing changes. */
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
    if (wanted.has(name)) after = come(before, name, input)
    // A copy that exists is never turned into Held: Held means that there is none and why.
    else if (rejection && (before === undefined || before.state === 'Held' || before.state === 'Assumed'))
      after = hold(before, rejection, input)
    // The member was named but can't be had: what runs there and elsewhere stays as it is.
    else if (rejection && before?.state !== 'Terminating' && before?.state !== 'Draining') after = before
    else after = leave(before, name, input)
    if (after !== before) changed = true
    if (after !== undefined) next[name] = after
  }
  return changed ? next : input.placedOn
}

function come(before: PlacedCopy | undefined, name: string, input: MoveInput): PlacedCopy {
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
    // Called back before it let go: it takes traffic again, and proves it again.
    case 'Draining':
      return enter('Available', input)
    // Half gone can't be called back: first gone, then a new life.
    case 'Terminating':
      return seen.gone ? enter('Assumed', input) : before
  }
}

function leave(before: PlacedCopy | undefined, name: string, input: MoveInput): PlacedCopy | undefined {
  if (before === undefined) return undefined
  const seen = input.seen(name)
  switch (before.state) {
    case 'Held':
    case 'Assumed':
      return undefined
    // It never took traffic: it goes as soon as somebody decided for another place. Undecided: it may be all there is.
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
      if (!mayStayDrained(name, input)) return enter('Available', input)
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
 * True where all of the wanted copies serve, proven by what is seen now and not by what was decided before. No wanted
 * copy at all is not "all of them" (I2), unless somebody asked for none; one that is Held is not serving.
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

/** A drain that is under way goes on while somebody serves; if the replacement fails meanwhile, it is undone. */
function mayStayDrained(name: string, input: MoveInput): boolean {
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

/** Members that hold a copy, or are about to. */
export function currentMembers(placed: PlacedOn): string[] {
  return Object.entries(placed)
    .filter(([, copy]) => hasCopy(copy) || copy.state === 'Assumed')
    .map(([name]) => name)
    .sort()
}
