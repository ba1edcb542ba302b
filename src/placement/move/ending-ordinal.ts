// The pod of a StatefulSet that goes to another member next takes no new requests before it ends: its endpoint leaves all members
// first. Otherwise requests would reach a pod that has ended, for as long as other members do not know. Pure.
import type { EndingOrdinal, PlacedCopy, PlacedOn } from '../../crds/index.ts'
import type { MoveInput } from './move-input.ts'

/**
 * What the copy says of this ordinal before it gives it away; `ends` once all members have known for the soak time that the pod takes
 * no requests.
 */
export function endingOf(name: string, ordinal: number, input: MoveInput): EndingOrdinal | 'ends' {
  const before = input.placedOn[name]?.ending
  const since = new Date(input.now).toISOString()
  if (before?.ordinal !== ordinal) return { ordinal, since }
  const elapsed = elapsedMs(before, input)
  if (before.isKnown) return elapsed >= input.soakSeconds * 1000 ? 'ends' : before
  const { endpoints = 0, ready = 0 } = input.seen(name)
  // As for a copy that drains: no member is waited for longer.
  const isKnown = endpoints < Math.max(1, ready) || elapsed >= input.drainSeconds * 3000
  // Not in the moment in which it is written: what is seen now is from before.
  return isKnown && elapsed > 0 ? { ordinal, since, isKnown } : before
}

/** The copies without what they say of ordinals that end; the same object if they say nothing. */
export function withoutEndings(placedOn: PlacedOn): PlacedOn {
  if (Object.values(placedOn).every(({ ending }) => ending === undefined)) return placedOn
  return Object.fromEntries(
    Object.entries(placedOn).map(([name, copy]) => {
      const { ending, ...rest } = copy
      return [name, ending === undefined ? copy : rest]
    }),
  )
}

/** In how many milliseconds the passing of time alone may change what a copy says of the ordinal that ends. */
export function endingWaitMs({ ending }: PlacedCopy, input: MoveInput): number | undefined {
  if (ending === undefined) return undefined
  return ending.isKnown ? Math.max(50, input.soakSeconds * 1000 - elapsedMs(ending, input)) : 1000
}

function elapsedMs({ since }: EndingOrdinal, { now }: MoveInput): number {
  const elapsed = now - Date.parse(since)
  return Number.isNaN(elapsed) ? Number.MAX_SAFE_INTEGER : elapsed
}
