// The withdrawal of pods before they end: they take no new requests, and their endpoints leave all members first.
// Otherwise requests would reach ended pods for as long as other members do not know of their end. Pure.
import type { PlacedCopy, PlacedOn, Withdrawal } from '#crds/index.ts'
import type { MoveInput } from './move-input.ts'

/**
 * The next state of a withdrawal: `ends` once all members have known for the soak time that the pods take no requests.
 * `pods` says which they are; `staying`: the endpoints of the copy that members know without them.
 */
export function nextWithdrawal<T extends object>(
  name: string,
  before: (T & Withdrawal) | undefined,
  { pods, staying }: { readonly pods: T; readonly staying: number },
  input: MoveInput,
): (T & Withdrawal) | 'ends' {
  const since = new Date(input.now).toISOString()
  if (before === undefined) return { ...pods, since }
  const elapsed = elapsedMs(before, input)
  if (before.isKnown) return elapsed >= input.soakSeconds * 1000 ? 'ends' : before
  // As for a copy that drains, the wait for members has a limit.
  const isKnown = (input.seen(name).endpoints ?? 0) <= staying || elapsed >= input.drainSeconds * 3000
  // Not in the step in which the withdrawal is written: the present reports are older.
  return isKnown && elapsed > 0 ? { ...pods, since, isKnown } : before
}

/** The copies without what they say of the ordinal that moves; the same object if they say nothing. */
export function withoutEndings(placedOn: PlacedOn): PlacedOn {
  return mapCopies(placedOn, (copy) => {
    const { ending, awaits, ...rest } = copy
    return ending === undefined && awaits === undefined ? copy : rest
  })
}

/** The copies without what they say of shares that shrink; the same object if they say nothing. */
export function withoutShrinking(placedOn: PlacedOn, of: (name: string) => boolean = () => true): PlacedOn {
  return mapCopies(placedOn, (copy, name) => {
    const { shrinking, ...rest } = copy
    return shrinking === undefined || !of(name) ? copy : rest
  })
}

/** In how many milliseconds the passing of time alone may change what a copy says of pods that end. */
export function withdrawalWaitMs({ ending, shrinking }: PlacedCopy, input: MoveInput): number | undefined {
  const withdrawal = ending ?? shrinking
  if (withdrawal === undefined) return undefined
  return withdrawal.isKnown ? Math.max(50, input.soakSeconds * 1000 - elapsedMs(withdrawal, input)) : 1000
}

/** The decision with each copy changed by `change`; the same object if no copy changes. */
export function mapCopies(placedOn: PlacedOn, change: (copy: PlacedCopy, name: string) => PlacedCopy): PlacedOn {
  const next = Object.fromEntries(Object.entries(placedOn).map(([name, copy]) => [name, change(copy, name)]))
  return Object.keys(next).every((name) => next[name] === placedOn[name]) ? placedOn : next
}

function elapsedMs({ since }: Withdrawal, { now }: MoveInput): number {
  const elapsed = now - Date.parse(since)
  return Number.isNaN(elapsed) ? Number.MAX_SAFE_INTEGER : elapsed
}
