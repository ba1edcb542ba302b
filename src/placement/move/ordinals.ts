// A StatefulSet goes to another member ordinal by ordinal: one pod ends in one member before the same one starts in the
// other. Each member has a range of ordinals. The wanted member takes the ordinal directly above its range, or if there
// is none, the one directly below; a wanted member without ordinals takes the highest one first. One pod at a time is
// not ready, whatever the cause: rollouts wait while a pod moves, and pods wait for a rollout in the wanted member. A pod
// with volumes ends once they are copied, and starts once they have arrived.
// Pure.
import type { EndingOrdinal, PlacedCopy, PlacedOn } from '#crds/index.ts'
import { isHere } from './guards.ts'
import { elapsedMs, liveStates, scaleOf, type MoveInput } from './move-input.ts'
import { mapCopies, nextWithdrawal, withoutEndings } from './withdrawal.ts'

interface Range {
  readonly name: string
  readonly copy: PlacedCopy
  /** First ordinal. */
  readonly start: number
  /** After the last ordinal. */
  readonly end: number
}

/**
 * The copies with the ordinals that each has next; the same object if nothing changes. At most one ordinal leaves or
 * arrives.
 */
export function nextOrdinals(placedOn: PlacedOn, input: MoveInput): PlacedOn {
  // A pod that was to move next, and no longer is, takes requests again.
  const ranges = nextRanges(withoutEndings(placedOn), { ...input, placedOn })
  const next = mapCopies(ranges, (copy, name) => withRollout(name, copy, ranges, { ...input, placedOn }))
  return Object.keys(next).every((name) => next[name] === placedOn[name]) ? placedOn : next
}

function nextRanges(placedOn: PlacedOn, input: MoveInput): PlacedOn {
  const { wanted } = input.decision
  const target = wanted.kind === 'members' ? wanted.names[0] : undefined
  const ranges = Object.entries(placedOn)
    .filter(
      ([name, { state }]) =>
        !['Held', 'Forwarding', 'Fenced'].includes(state) && (state !== 'Assumed' || name === target),
    )
    .map(([name, copy]) => rangeOf(name, copy, input))
  const lacking = ranges.map((range) => withoutElsewhere(range, input)).filter((range, at) => range !== ranges[at])
  if (lacking.length > 0) return lacking.reduce((placed, range) => withRange(placed, range, range), placedOn)
  const taker = ranges.find(({ name }) => name === target) ?? (target === undefined ? largest(ranges) : undefined)
  if (taker === undefined || wanted.kind === 'none' || taker.copy.state === 'Terminating') return placedOn
  const others = ranges.filter(({ name }) => name !== taker.name)
  // Ordinals that the spec no longer asks for end at once.
  const within = others
    .filter(({ copy }) => copy.replicas !== undefined)
    .reduce((placed, range) => withRange(placed, range, range), placedOn)
  return step(within, { taker, others, isWithin: within === placedOn }, input)
}

/** `isWithin`: every range lies within the ordinals of the spec. */
function step(
  placedOn: PlacedOn,
  { taker, others, isWithin }: { readonly taker: Range; readonly others: readonly Range[]; readonly isWithin: boolean },
  input: MoveInput,
): PlacedOn {
  const { replicas, start } = scaleOf(input)
  const end = start + replicas
  const { volumes } = input
  const isBegun = !isEmpty(taker) || others.some(({ copy }) => copy.start !== undefined)
  // While volumes are copied, nothing waits: rollouts go on.
  if (!isBegun && volumes?.isCopied(taker.name) === false) return placedOn
  const settled = isWithin && others.every((other) => isSettled(other, input))
  const all = [taker, ...others]
  if (settled && others.every(isEmpty)) {
    const elsewhere = volumes?.byOrdinal?.firstElsewhere(taker.name)
    if (elsewhere === undefined) return withRange(placedOn, taker, undefined)
    // A claim whose ordinal the spec does not ask for follows, too: it would be needed when the StatefulSet grows.
    if (elsewhere < start || elsewhere >= end) return withAwaited(placedOn, taker, elsewhere, input)
  }
  // The other copies get explicit ranges before the first pod moves: rollouts wait only in copies with such a range.
  const begun = others
    .filter((other) => !isEmpty(other) && liveStates.includes(other.copy.state))
    .reduce(
      (placed, other) => withRange(placed, other, other),
      isEmpty(taker) ? withRange(placedOn, taker, { start: end, end }) : placedOn,
    )
  if (!settled) return begun
  const isMissing = (ordinal: number): boolean =>
    start <= ordinal && ordinal < end && !all.some((range) => range.start <= ordinal && ordinal < range.end)
  const isHealthyNow = isHealthy(taker, input)
  const firstMissing = [start, ...all.map((range) => range.end)].sort((a, b) => a - b).find(isMissing)
  const extended = isEmpty(taker) ? single(firstMissing) : extend(taker, isMissing)
  if (extended !== undefined) {
    const ordinal = addedTo(taker, extended)
    if (!isHere(ordinal, taker.name, volumes?.byOrdinal)) return withAwaited(begun, taker, ordinal, input)
    return isHealthyNow ? withNextPod(begun, taker, extended, input) : begun
  }
  // An ordinal is missing that was on its way to a member that is no longer wanted: before anything else moves, it goes
  // to a member that has an ordinal next to it, and its data.
  const neighbours = others.flatMap((other) => {
    const range = isEmpty(other) || !liveStates.includes(other.copy.state) ? undefined : extend(other, isMissing)
    return range === undefined ? [] : [{ other, range, ordinal: addedTo(other, range) }]
  })
  const back = neighbours.find(({ other, ordinal }) => isHere(ordinal, other.name, volumes?.byOrdinal)) ?? neighbours[0]
  if (back !== undefined)
    return isHere(back.ordinal, back.other.name, volumes?.byOrdinal)
      ? withRange(begun, back.other, back.range)
      : withAwaited(begun, back.other, back.ordinal, input)
  const isDecided = input.decision.wanted.kind === 'members'
  const mayEnd = isHealthyNow && isDecided && areAllReady(all, input)
  return mayEnd ? giveNext(begun, taker, others, input) : begun
}

/**
 * Gives the taker the new range, which has one more pod. If the taker serves already, the time that this pod may take
 * (`stuckMs`) begins now.
 */
function withNextPod(
  placedOn: PlacedOn,
  taker: Range,
  range: Pick<Range, 'start' | 'end'>,
  input: MoveInput,
): PlacedOn {
  const next = withRange(placedOn, taker, range)
  const copy = next[taker.name]
  return copy?.state === 'Serving'
    ? { ...next, [taker.name]: { ...copy, since: new Date(input.now).toISOString() } }
    : next
}

function single(ordinal: number | undefined): Pick<Range, 'start' | 'end'> | undefined {
  return ordinal === undefined ? undefined : { start: ordinal, end: ordinal + 1 }
}

/** The ordinal that the range has more than that of the member. */
function addedTo(before: Range, range: Pick<Range, 'start' | 'end'>): number {
  return isEmpty(before) || range.start < before.start ? range.start : range.end - 1
}

/** The taker with the ordinal whose data it waits for; the same object if it says so already. */
function withAwaited(placedOn: PlacedOn, { name }: Range, awaits: number, input: MoveInput): PlacedOn {
  const [copy, before] = [placedOn[name], input.placedOn[name]]
  if (copy === undefined) return placedOn
  const { awaits: known, ...rest } = before ?? {}
  const isSame = known === awaits && JSON.stringify(rest) === JSON.stringify(copy)
  return { ...placedOn, [name]: isSame && before ? before : { ...copy, awaits } }
}

/** The range with a missing ordinal (that no member has) after or before it; undefined if neither is missing. */
function extend(range: Range, isMissing: (ordinal: number) => boolean): Pick<Range, 'start' | 'end'> | undefined {
  if (isMissing(range.end)) return { start: range.start, end: range.end + 1 }
  return isMissing(range.start - 1) ? { start: range.start - 1, end: range.end } : undefined
}

/**
 * Whether the next pod may end: no other one is missing, and no rollout can end another one meanwhile. A member that
 * gives pods away may also have no ready pod at all, because then its next pod is not ready either.
 */
function areAllReady(ranges: readonly Range[], input: MoveInput): boolean {
  return ranges.every((range) => {
    const { observed, ready = 0 } = input.seen(range.name)
    if (isEmpty(range)) return true
    const isTaker = input.decision.wanted.kind === 'members' && input.decision.wanted.names[0] === range.name
    if (range.copy.paused !== true || !observed || (isTaker && !isRolledOut(range, input))) return false
    return ready >= range.end - range.start || (ready === 0 && !isTaker)
  })
}

/** The member has given the present template to all pods of its range that get it by a rollout. */
function isRolledOut(range: Range, input: MoveInput): boolean {
  const { updatesFrom = 0 } = scaleOf(input)
  const { observed, updated = 0 } = input.seen(range.name)
  return observed && updated >= range.end - Math.min(range.end, Math.max(range.start, updatesFrom))
}

/**
 * The copy, with its rollout paused while its pods are in several members. Only the wanted member rolls out, and only
 * while no pod moves: the pods of the other members get the present template when they move. If a pod does not become
 * ready in the wanted member in time, no copy's rollout is paused, so that the tenant can mend the template.
 */
function withRollout(name: string, copy: PlacedCopy, placedOn: PlacedOn, input: MoveInput): PlacedCopy {
  const { paused: before, ...rest } = copy
  const paused = copy.start !== undefined && !mayRollOut(name, copy, placedOn, input)
  if (paused === (before ?? false)) return copy
  return paused ? { ...rest, paused } : rest
}

function mayRollOut(name: string, copy: PlacedCopy, placedOn: PlacedOn, input: MoveInput): boolean {
  const ranges = Object.entries(placedOn).map(([other, one]) => rangeOf(other, one, input))
  const own = ranges.find((range) => range.name === name)
  const { wanted } = input.decision
  const target = wanted.kind === 'members' ? wanted.names[0] : undefined
  const taker = ranges.find((range) => range.name === target)
  if (own === undefined || (taker !== undefined && isStuck(taker, input))) return true
  if (own !== taker || isEmpty(own)) return false
  // A rollout that has begun goes on until it is complete.
  if (copy.paused !== true) return !isRolledOut(own, input) && input.placedOn[name]?.start !== undefined
  const { replicas } = scaleOf(input)
  const all = ranges.reduce((sum, { start, end }) => sum + end - start, 0)
  const areOthersPaused = ranges.every(
    (range) => range === own || isEmpty(range) || input.placedOn[range.name]?.paused === true,
  )
  return !isRolledOut(own, input) && all >= replicas && areOthersPaused && ranges.every((range) => isFull(range, input))
}

/** How long the wanted member may take to get a pod ready before rollouts go on all the same. */
const stuckMs = 600_000

function isStuck({ name, start, end, copy }: Range, input: MoveInput): boolean {
  // `observed` is not asked, because the decision that the member must observe depends on the result of this function.
  return (input.seen(name).ready ?? 0) < end - start && elapsedMs(copy, input) >= stuckMs
}

/** The member has all pods of its range, and they are ready. */
function isFull(range: Range, { seen }: MoveInput): boolean {
  const { observed, pods = 0, ready = 0 } = seen(range.name)
  const count = range.end - range.start
  return count === 0 || (observed && pods === count && ready >= count)
}

/**
 * Takes the ordinal that the taker gets next from the copy that has it, once the pod of this ordinal takes no requests.
 * A taker without ordinals gets the highest one first.
 */
function giveNext(placedOn: PlacedOn, taker: Range, others: readonly Range[], input: MoveInput): PlacedOn {
  const { replicas, start } = scaleOf(input)
  const end = start + replicas
  const own = isEmpty(taker) ? { start: end, end } : taker
  const next = own.end < end ? own.end : own.start - 1
  const holder = others.find((other) => other.start <= next && next < other.end)
  if (holder === undefined || !liveStates.includes(holder.copy.state)) return placedOn
  if (input.volumes?.byOrdinal?.isCopied(next, taker.name) === false) return placedOn
  if (next !== holder.end - 1 && next !== holder.start) return placedOn
  const ending = endingOf(holder.name, next, input)
  if (ending !== 'ends') return withEnding(placedOn, holder, ending, input)
  const rest = next === holder.end - 1 ? { start: holder.start, end: next } : { start: next + 1, end: holder.end }
  return withRange(placedOn, holder, rest)
}

/** How far the withdrawal of this ordinal's pod is, for the field `ending` of the copy; `ends` once the pod may end. */
function endingOf(name: string, ordinal: number, input: MoveInput): EndingOrdinal | 'ends' {
  const before = input.placedOn[name]?.ending
  const current = before?.ordinal === ordinal ? before : undefined
  const staying = Math.max(1, input.seen(name).ready ?? 0) - 1
  return nextWithdrawal(name, current, { pods: { ordinal }, staying }, input)
}

function withEnding(placedOn: PlacedOn, { name }: Range, ending: EndingOrdinal, input: MoveInput): PlacedOn {
  const [copy, before] = [placedOn[name], input.placedOn[name]]
  if (copy === undefined) return placedOn
  return { ...placedOn, [name]: before?.ending === ending ? before : { ...copy, ending } }
}

/** The ordinals of a copy, within those that the spec asks for now. */
function rangeOf(name: string, copy: PlacedCopy, input: MoveInput): Range {
  const { replicas, start } = scaleOf(input)
  const isNew = copy.state === 'Assumed' && copy.replicas === undefined
  const first = Math.min(copy.start ?? start, start + replicas)
  const last = Math.min(first + (isNew ? 0 : (copy.replicas ?? replicas)), start + replicas)
  return { name, copy, start: first, end: Math.max(first, last) }
}

/**
 * The range without the ordinals at its ends whose data is in another member; the same object if there are none. Their
 * pods do not run here: data that was on its way arrived elsewhere after it was decided that its pod stays.
 */
function withoutElsewhere(range: Range, { volumes }: MoveInput): Range {
  if (!liveStates.includes(range.copy.state)) return range
  const lacks = (ordinal: number): boolean => !isHere(ordinal, range.name, volumes?.byOrdinal)
  let { start, end } = range
  while (start < end && lacks(end - 1)) end -= 1
  while (start < end && lacks(start)) start += 1
  return start === range.start && end === range.end ? range : { ...range, start, end }
}

function isEmpty({ start, end }: Range): boolean {
  return start >= end
}

/** The member has the pods of its range, and no others any more. */
function isSettled({ name, start, end }: Range, { seen }: MoveInput): boolean {
  const { observed, pods = 0 } = seen(name)
  return observed && pods === end - start
}

/** The member can take one more: it has none yet, or all that it has serve. */
function isHealthy(range: Range, { seen }: MoveInput): boolean {
  if (isEmpty(range) && range.copy.state === 'Assumed') return true
  const { available, published } = seen(range.name)
  return range.copy.state === 'Serving' && available && published
}

function largest(ranges: readonly Range[]): Range | undefined {
  const live = ranges.filter(({ copy }) => liveStates.includes(copy.state))
  return live.toSorted((a, b) => b.end - b.start - (a.end - a.start) || (a.name < b.name ? -1 : 1))[0]
}

/** `range` undefined: all ordinals. */
function withRange(
  placedOn: PlacedOn,
  { name }: Range,
  range: { readonly start: number; readonly end: number } | undefined,
): PlacedOn {
  const copy = placedOn[name]
  if (copy === undefined) return placedOn
  const { replicas, start, ...rest } = copy
  if (range === undefined)
    return replicas === undefined && start === undefined ? placedOn : { ...placedOn, [name]: rest }
  if (replicas === range.end - range.start && start === range.start) return placedOn
  return { ...placedOn, [name]: { ...rest, replicas: range.end - range.start, start: range.start } }
}
