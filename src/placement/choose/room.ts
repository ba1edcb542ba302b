// The number of a workload's pods that fit. Pure.
import type { Amounts } from '#apimachinery/quantity/index.ts'
import type { PodDemand } from '#placement/rules/candidate.ts'

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
export function podsIn(perPod: Amounts, amounts: Amounts): number {
  const counts = [...perPod].flatMap(([name, { nanos }]) => {
    const there = amounts.get(name)
    return there === undefined || nanos <= 0n ? [] : [Number(there.nanos / nanos)]
  })
  return Math.min(Infinity, ...counts)
}
