// The status that the ResourceQuotas of a namespace should have.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { type Amounts, amountsOf, listOf } from '#apimachinery/quantity/index.ts'
import { quotasOf, type Quota } from './quota.ts'
import { dropTallies } from './tally.ts'
import { usedOf } from './used.ts'

/** The quotas whose status is outdated, each with its new status. `now`: milliseconds since the epoch. */
export function outdatedQuotas(objects: ClusterObjects, namespace: string, now: number): readonly KubeObject[] {
  const quotas = quotasOf(objects, namespace)
  if (quotas.length === 0) dropTallies(objects, namespace)
  return quotas.flatMap((quota) => {
    const used = usedOf(objects, namespace, { quota, quotas, now })
    if (isCurrent(quota, used)) return []
    return [{ ...quota.object, status: { hard: listOf(quota.hard), used: listOf(used) } }]
  })
}

function isCurrent({ object, hard }: Quota, used: Amounts): boolean {
  const status = (object['status'] ?? {}) as { hard?: Record<string, string>; used?: Record<string, string> }
  return (
    isDeepStrictEqual(listOf(amountsOf(status.hard)), listOf(hard)) &&
    isDeepStrictEqual(listOf(amountsOf(status.used)), listOf(used))
  )
}
