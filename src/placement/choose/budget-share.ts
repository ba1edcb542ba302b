// The part of a PodDisruptionBudget that one member has of a divided workload: together members allow no more disruptions than the
// budget does. Pure.
import { divide } from './divide.ts'

/** Of spec; numbers or percentages such as `30%`. One of the two. */
export interface Budget {
  readonly minAvailable?: number | string
  readonly maxUnavailable?: number | string
}

/**
 * The budget of `member`. `shares`: how many pods each member has. minAvailable is divided and rounded up in each; maxUnavailable is
 * divided so that the sum is kept: a budget of one pod is given to one member, the largest, and the first by name.
 */
export function budgetShare(
  { minAvailable, maxUnavailable }: Budget,
  { member, shares }: { readonly member: string; readonly shares: Readonly<Record<string, number>> },
): Budget {
  const all = Object.values(shares).reduce((sum, share) => sum + share, 0)
  if (all === 0)
    return {
      ...(minAvailable !== undefined && { minAvailable }),
      ...(maxUnavailable !== undefined && { maxUnavailable }),
    }
  // A percentage is rounded up in each member, so together it is never less.
  if (minAvailable !== undefined)
    return {
      minAvailable:
        typeof minAvailable === 'string' ? minAvailable : Math.ceil((minAvailable * (shares[member] ?? 0)) / all),
    }
  if (maxUnavailable === undefined) return {}
  const most = typeof maxUnavailable === 'string' ? percentOf(maxUnavailable, all) : maxUnavailable
  const portions = Object.entries(shares)
    .filter(([, share]) => share > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, share]) => ({ name, weight: share, max: share }))
  return { maxUnavailable: divide(most, portions)[member] ?? 0 }
}

/** Rounded up, as the disruption controller does. */
function percentOf(text: string, all: number): number {
  const percent = Number(/^(\d+)%$/.exec(text)?.[1] ?? 0)
  return Math.ceil((percent * all) / 100)
}
