// The choice of members for a divided workload, and the number of its replicas in each. Pure.
import { type Amounts, amountsText } from '#apimachinery/quantity/index.ts'
import type { Candidate, Demand, DivideDemand, PodDemand } from '#placement/rules/candidate.ts'
import { divide, portionOf, type Portion } from './divide.ts'
import { freeOf } from './filters.ts'

interface DividedInput {
  readonly divide: DivideDemand
  readonly demand: Demand
  /** The members that may have some, in the order in which equal claims are met. */
  readonly fitting: readonly Candidate[]
  /** How many replicas each member has now. */
  readonly present: Readonly<Record<string, number>>
}

interface Shares {
  readonly shares: Readonly<Record<string, number>>
  /** Why some replicas have no member; absent if all have one. */
  readonly short?: string
}

/** The replicas of each member that gets some. If no member gets any, the first member has 0. */
export function chooseShares({ divide: how, fitting, present }: DividedInput): Shares {
  const portions = fitting.map((candidate) => boundedPortion(candidate, how, present[candidate.name] ?? 0))
  const all = divide(how.replicas, portions)
  const used = Object.entries(all).filter(([, share]) => share > 0)
  const [first] = fitting
  const shares = Object.fromEntries(used.length === 0 && first !== undefined ? [[first.name, 0]] : used)
  const given = used.reduce((sum, [, share]) => sum + share, 0)
  if (given >= how.replicas) return { shares }
  const rooms = portions.map(({ name, max = 0 }) => `"${name}" ${max}`).join(', ')
  const message = `${how.replicas - given} of ${how.replicas} replicas have no room: each needs ${amountsText(how.perPod)}, and member clusters can take ${rooms}`
  return { shares, short: message }
}

function boundedPortion(candidate: Candidate, how: DivideDemand, present: number): Portion {
  const { limits, requested } = candidate
  const { min, max = Infinity, weight, name } = portionOf(candidate.name, how.bounds)
  // Running replicas are not taken away because others need the room.
  const room = limits === undefined ? Infinity : Math.max(present, roomFor(how, freeOf(limits, requested)))
  const most = Math.min(max, room)
  const share = how.division === 'ByCapacity' && limits !== undefined ? Math.max(1, podsIn(how.perPod, limits)) : 1
  return {
    name,
    weight: how.division === 'Weighted' ? weight : Math.min(share, Number.MAX_SAFE_INTEGER),
    ...(min !== undefined && { min: Math.min(min, most) }),
    ...(most !== Infinity && { max: most }),
  }
}

/** The most replicas that fit with what a rollout adds to them. */
export function roomFor({ perPod, surge, replicas }: PodDemand, free: Amounts): number {
  const pods = podsIn(perPod, free)
  let [low, high] = [0, Math.min(pods, replicas)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (middle + surge(middle) <= pods) low = middle
    else high = middle - 1
  }
  return low
}

/** How many pods these amounts are enough for; Infinity where nothing that they request is limited. */
function podsIn(perPod: Amounts, amounts: Amounts): number {
  const counts = [...perPod].flatMap(([name, { nanos }]) => {
    const there = amounts.get(name)
    return there === undefined || nanos <= 0n ? [] : [Number(there.nanos / nanos)]
  })
  return Math.min(Infinity, ...counts)
}
