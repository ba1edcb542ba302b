// How many replicas each copy has next. More are given at once; fewer only when as many as the workload wants are ready without
// them. Pure.
import type { PlacedOn } from '../../crds/index.ts'
import { withoutEndings } from './ending-ordinal.ts'
import { scaleOf, shareOf, type MoveInput } from './move-input.ts'
import { nextOrdinals } from './ordinals.ts'

/** The copies with the replicas that each has next; the same object if nothing changes. */
export function nextShares(placedOn: PlacedOn, input: MoveInput): PlacedOn {
  if (input.strategy === 'ordinalByOrdinal') return nextOrdinals(placedOn, input)
  const { wanted, shares } = input.decision
  let next = withoutEndings(placedOn)
  if (wanted.kind !== 'members') return next
  for (const name of wanted.names) {
    const copy = next[name]
    if (copy === undefined || copy.state === 'Held') continue
    const { replicas, start: _, ...rest } = copy
    const share = shares?.[name]
    if (replicas === share && copy.start === undefined) continue
    const [is, should] = [shareOf(copy, input), share ?? scaleOf(input).replicas]
    // Copies that an interrupted move left with a part get the rest when they are alone.
    const isPart = copy.start !== undefined && Object.keys(next).length > 1
    if (isPart || (should < is && !maySpare(name, is, should, { ...input, placedOn: next }))) continue
    next = { ...next, [name]: share === undefined ? rest : { ...rest, replicas: share } }
  }
  return next
}

/** Whether the workload has all the ready pods that it wants without those that the member gives up. */
function maySpare(name: string, is: number, should: number, input: MoveInput): boolean {
  const readyIn = (member: string): number => {
    const copy = input.placedOn[member]
    if (copy === undefined || ['Held', 'Assumed', 'Lost', 'Fenced', 'Draining', 'Terminating'].includes(copy.state))
      return 0
    const seen = input.seen(member)
    // What a lost member reported last says nothing about now; its copy is marked Lost later in the same step.
    return seen.lost === undefined ? Math.min(seen.ready ?? 0, shareOf(copy, input)) : 0
  }
  if (Math.min(input.seen(name).ready ?? 0, is) <= should) return true
  const elsewhere = Object.keys(input.placedOn)
    .filter((member) => member !== name)
    .reduce((sum, member) => sum + readyIn(member), 0)
  return elsewhere + should >= scaleOf(input).replicas
}
