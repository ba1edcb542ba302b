// The next number of replicas of each copy. A copy gets more at once, and fewer only when as many as the workload wants
// are ready without them, and when all members know that the ending pods take no requests. Pure.
import type { PlacedCopy, PlacedOn, ShrinkingShare } from '#crds/index.ts'
import { liveStates, scaleOf, shareOf, type MoveInput } from './move-input.ts'
import { nextOrdinals } from './ordinals.ts'
import { nextWithdrawal, withoutEndings, withoutShrinking } from './withdrawal.ts'

/** The copies with the replicas that each has next; the same object if nothing changes. */
export function nextShares(placedOn: PlacedOn, input: MoveInput): PlacedOn {
  if (input.strategy === 'ordinalByOrdinal') return nextOrdinals(placedOn, input)
  const { wanted, shares } = input.decision
  let next = withoutEndings(placedOn)
  if (wanted.kind !== 'members') return withoutShrinking(next)
  next = withoutShrinking(next, (name) => !wanted.names.includes(name))
  const hasOthers = Object.keys(next).length > 1
  for (const name of wanted.names) {
    const copy = next[name]
    if (copy === undefined || copy.state === 'Held') continue
    const after = withShare(name, copy, { share: shares?.[name], hasOthers }, { ...input, placedOn: next })
    if (after !== copy) next = { ...next, [name]: after }
  }
  return next
}

function withShare(
  name: string,
  copy: PlacedCopy,
  { share, hasOthers }: { readonly share: number | undefined; readonly hasOthers: boolean },
  input: MoveInput,
): PlacedCopy {
  const { replicas, start, shrinking, ...rest } = copy
  const still = shrinking === undefined ? copy : { ...rest, ...numbers(replicas, start) }
  if (replicas === share && start === undefined)
    return shrinking && hasEndingPods(name, share, shrinking, input) ? copy : still
  const [is, should] = [shareOf(copy, input), share ?? scaleOf(input).replicas]
  // Copies that an interrupted move left with a part get the rest when they are alone.
  if (start !== undefined && hasOthers) return copy
  if (should >= is) return { ...rest, ...numbers(share) }
  if (!maySpare(name, is, should, input)) return still
  const next = shrinkingOf(name, copy, should, input)
  if (next === 'ends') return { ...rest, ...numbers(share), ...(shrinking && { shrinking }) }
  return next === shrinking ? copy : { ...copy, shrinking: next }
}

function numbers(replicas: number | undefined, start?: number): Pick<PlacedCopy, 'replicas' | 'start'> {
  return { ...(replicas !== undefined && { replicas }), ...(start !== undefined && { start }) }
}

/** The copy's note about its share before it has fewer replicas; `ends` when it has. */
function shrinkingOf(name: string, copy: PlacedCopy, to: number, input: MoveInput): ShrinkingShare | 'ends' {
  const { available, ready = 0 } = input.seen(name)
  const current = copy.shrinking?.to === to ? copy.shrinking : undefined
  // Where no ready pod ends, no request is lost. During a rollout it is not known which pods end.
  if (Math.min(ready, shareOf(copy, input)) <= to || copy.state !== 'Serving') return 'ends'
  if (current === undefined && !available) return 'ends'
  return nextWithdrawal(name, current, { pods: { to }, staying: to }, input)
}

/** Whether pods that the copy has given up still run: as long as they do, the copy keeps its note about them. */
function hasEndingPods(name: string, share: number | undefined, { to }: ShrinkingShare, input: MoveInput): boolean {
  const { observed, pods = 0 } = input.seen(name)
  return to === share && (!observed || pods > to)
}

/** Whether the workload has all the ready pods that it wants, not counting the pods that the member gives up. */
function maySpare(name: string, is: number, should: number, input: MoveInput): boolean {
  const readyIn = (member: string): number => {
    const copy = input.placedOn[member]
    if (copy === undefined || !liveStates.includes(copy.state)) return 0
    const seen = input.seen(member)
    // The last report of a lost member says nothing about now; its copy is marked Lost later in the same step.
    return seen.lost === undefined ? Math.min(seen.ready ?? 0, copy.shrinking?.to ?? shareOf(copy, input)) : 0
  }
  if (Math.min(input.seen(name).ready ?? 0, is) <= should) return true
  const elsewhere = Object.keys(input.placedOn)
    .filter((member) => member !== name)
    .reduce((sum, member) => sum + readyIn(member), 0)
  return elsewhere + should >= scaleOf(input).replicas
}
