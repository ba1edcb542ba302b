// The reasons of a decision: the verdict of each filter and each score on each member.
import type { Decision } from '#placement/move/move-input.ts'
import { noDemand, type Candidate } from '#placement/rules/candidate.ts'
import { choose, type ChooseInput } from './choose.ts'
import { filters } from './filters.ts'
import { byScore, scores } from './scores.ts'

export interface MemberExplanation {
  readonly cluster: string
  /** Whether the workload is wanted there. */
  readonly chosen: boolean
  /** Whether a copy is there now. */
  readonly current: boolean
  /** Every filter that refuses the member, not only the first one. */
  readonly refusals: readonly { readonly reason: string; readonly message: string }[]
  readonly scores: readonly { readonly name: string; readonly value: number }[]
}

export interface Explanation {
  readonly decision: Decision
  /** The best member first. */
  readonly members: readonly MemberExplanation[]
}

/** The decision that `choose` makes of the same input, with all its grounds. */
export function explain(input: ChooseInput): Explanation {
  const { candidates, demand = noDemand, current } = input
  const decision = choose(input)
  const chosen = decision.wanted.kind === 'members' ? decision.wanted.names : []
  const order = byScore(demand)
  const explained = candidates.toSorted(order).map((candidate) => ({
    cluster: candidate.name,
    chosen: chosen.includes(candidate.name),
    current: current.includes(candidate.name),
    refusals: refusalsOf(candidate, input, decision),
    scores: scores.map(({ name, of }) => ({ name, value: of(candidate, demand) })),
  }))
  const rank = ({ chosen, refusals }: MemberExplanation): number => (chosen ? 0 : refusals.length === 0 ? 1 : 2)
  return { decision, members: explained.toSorted((a, b) => rank(a) - rank(b)) }
}

function refusalsOf(
  candidate: Candidate,
  { demand = noDemand }: ChooseInput,
  { rejected }: Decision,
): MemberExplanation['refusals'] {
  const refused = filters.flatMap(({ reason, refuse }) => {
    const message = refuse(candidate, demand)
    return message === undefined ? [] : [{ reason, message }]
  })
  // Whether a member keeps domains even depends on the others, so no filter knows it.
  const uneven = rejected.filter(({ cluster, reason }) => cluster === candidate.name && reason === 'SpreadUneven')
  return [...refused, ...uneven.map(({ reason, message }) => ({ reason, message }))]
}
