// The scores: which of the members that no filter refuses is best. Compared one after the other; the name decides at
// last.
import { matches } from '#crds/index.ts'
import type { Candidate, Demand } from '#placement/rules/candidate.ts'
import { firstUntolerated } from '#placement/rules/taints.ts'

export interface Score {
  readonly name: string
  /** The score of the member; a higher score is better. */
  readonly of: (candidate: Candidate, demand: Demand) => number
}

/** In order: a later score counts only between members that are equal in all earlier ones. */
export const scores: readonly Score[] = [
  { name: 'Ready', of: ({ ready }) => Number(ready) },
  {
    name: 'Prefer',
    of: ({ labels }, { prefer }) =>
      prefer.reduce((sum, { weight, labelSelector }) => sum + (matches(labelSelector, labels) ? weight : 0), 0),
  },
  {
    name: 'NotTainted',
    of: ({ taints }, { tolerations }) =>
      firstUntolerated(taints, tolerations, ['PreferNoSchedule']) === undefined ? 1 : 0,
  },
  { name: 'FewCopies', of: ({ load }) => -load },
]

/** Sorts the best member first. The order of the arguments does not matter. */
export function byScore(demand: Demand): (a: Candidate, b: Candidate) => number {
  return (a, b) => {
    for (const { of } of scores) {
      const difference = of(b, demand) - of(a, demand)
      if (difference !== 0) return difference
    }
    return a.name < b.name ? -1 : 1
  }
}
