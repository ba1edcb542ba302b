// The total usage of a quota by the objects of its namespace.
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { Amounts, Quantity } from '#apimachinery/quantity/index.ts'
import type { Quota } from './quota.ts'
import { usedBy } from './tally.ts'
import { countedResource, countsFor, measuredResources } from './usage.ts'

/**
 * The usage of every name in `quota.hard` that objects can count for, zeros included. `quotas`: all quotas of the
 * namespace. `now`: milliseconds since the epoch.
 */
export function usedOf(
  objects: ClusterObjects,
  namespace: string,
  { quota, quotas, now }: { quota: Quota; quotas: readonly Quota[]; now: number },
): Amounts {
  const used = new Map<string, Quantity>()
  const names = [...quota.hard.keys()]
  const all = quotas.map(({ scopes }) => scopes)
  for (const resource of measuredResources) {
    const own = names.filter((name) => countsFor(resource, name))
    if (own.length === 0) continue
    const amounts = usedBy(objects, { resource, namespace }, { scopes: quota.scopes, all }, now)
    for (const name of own) used.set(name, amounts.get(name) ?? numberOf(0))
  }
  for (const name of names) {
    const resource = countedResource(name)
    // Objects that are only counted are in no scope.
    if (resource !== undefined)
      used.set(name, numberOf(quota.scopes.length > 0 ? 0 : objects.count({ resource, namespace })))
  }
  return used
}

function numberOf(count: number): Quantity {
  return { nanos: BigInt(count) * 1_000_000_000n, format: 'DecimalSI' }
}
