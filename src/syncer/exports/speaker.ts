// The member whose status a tenant sees while several members have a copy. Pure.
import type { CopyState, PlacedOn } from '#crds/index.ts'

/** The first state counts most. */
const order: readonly CopyState[] = ['Serving', 'Draining', 'Available', 'Applied', 'Syncing', 'Lost']

/** Of two that serve, the one that has done so for longer. Undefined: no member has a copy. */
export function speaker(placed: PlacedOn): string | undefined {
  const rank = (state: CopyState): number => (order.includes(state) ? order.indexOf(state) : order.length)
  const [first] = Object.entries(placed)
    .filter(([, { state }]) => order.includes(state))
    .sort(
      ([one, a], [other, b]) =>
        rank(a.state) - rank(b.state) || (`${a.since ?? ''} ${one}` < `${b.since ?? ''} ${other}` ? -1 : 1),
    )
  return first?.[0]
}
