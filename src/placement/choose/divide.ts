// The division of replicas, and of a PodDisruptionBudget, among members: by Webster's method (Sainte-Laguë), which
// never takes a replica from a member because there are more of them. Pure.
import type { DivisionBound } from '#crds/index.ts'

export interface Portion {
  readonly name: string
  /** The member's part of the sum of all weights; more than 0. */
  readonly weight: number
  /** The member gets so many before another member gets more than its own `min`. Default 0. */
  readonly min?: number
  /** Default: no limit. */
  readonly max?: number
}

/**
 * How many of `replicas` each member gets; together fewer only where all have their `max`. Equal claims go to the
 * member that is first in `portions`. At most members × log(replicas) steps.
 */
export function divide(replicas: number, portions: readonly Portion[]): Record<string, number> {
  const least = portions.reduce((sum, { min = 0 }) => sum + min, 0)
  // If there are fewer replicas than the minima need, no member gets more than its minimum.
  const effective =
    least > replicas ? portions.map(({ min = 0, ...rest }) => ({ ...rest, min: 0, max: min })) : portions
  const shares = atDivisor(effective, divisorFor(replicas, effective))
  let left = replicas - shares.reduce((sum, share) => sum + share, 0)
  while (left > 0) {
    const next = nextOf(effective, shares)
    if (next === undefined) break
    shares[next] = (shares[next] ?? 0) + 1
    left--
  }
  return Object.fromEntries(portions.map(({ name }, i) => [name, shares[i] ?? 0]))
}

/** The largest votes per seat, within rounding, at which no more than `replicas` are given. */
function divisorFor(replicas: number, portions: readonly Portion[]): number {
  const total = (votes: number): number => atDivisor(portions, votes).reduce((sum, share) => sum + share, 0)
  let low = 0
  let high = (replicas + 1) / Math.min(...portions.map(({ weight }) => weight), Infinity)
  for (let i = 0; i < 64 && low < high; i++) {
    const middle = (low + high) / 2
    if (total(middle) <= replicas) low = middle
    else high = middle
  }
  // A little less, so that the replicas at exactly half a seat are given one after the other afterwards.
  return low * (1 - 1e-9)
}

/** Webster rounds to the nearest number. */
function atDivisor(portions: readonly Portion[], votes: number): number[] {
  return portions.map(({ weight, min = 0, max = Infinity }) =>
    Math.min(max, Math.max(min, Math.ceil(weight * votes - 0.5))),
  )
}

/**
 * The index of the member with the highest claim to one more: its weight divided by two times its replicas plus one.
 */
function nextOf(portions: readonly Portion[], shares: readonly number[]): number | undefined {
  let best: number | undefined
  let most = 0
  portions.forEach(({ weight, max = Infinity }, i) => {
    const share = shares[i] ?? 0
    const claim = weight / (2 * share + 1)
    if (share >= max || claim <= most * (1 + 1e-9)) return
    best = i
    most = claim
  })
  return best
}

/** The bounds of a Placement for one member; without any, weight 1 and no limit. */
export function portionOf(name: string, bounds: readonly DivisionBound[]): Portion {
  const { min, max, weight = 1 } = bounds.find(({ cluster }) => cluster === name) ?? {}
  return { name, weight, ...(min !== undefined && { min }), ...(max !== undefined && { max }) }
}

/** The fields of the spec of a budget: numbers, or percentages such as `30%`. Only one of the two is set. */
export interface Budget {
  readonly minAvailable?: number | string
  readonly maxUnavailable?: number | string
}

/**
 * The budget of `member`. `shares`: how many pods each member has. minAvailable is divided and rounded up in each;
 * maxUnavailable is divided so that the sum is kept: a budget of one pod is given to one member, the largest, and the
 * first by name.
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
