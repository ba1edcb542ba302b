// The total requests of a pod to its node, from the pod's spec (k8s.io/component-helpers/resource).
// Not the index, which needs Node: browsers use this file, too.
import { isJsonObject, type JsonObject } from '#apimachinery/meta/json.ts'
import { addAmounts, amountsOf, type Amounts } from './amounts.ts'
import type { Quantity } from './quantity.ts'

type Which = 'requests' | 'limits'

/** True for resources that the pod itself may ask for (KEP-2837). */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-')
}

/**
 * The requests or limits of a pod: those of the pod itself if it has them, else those of its containers, plus the
 * overhead.
 */
export function totalOfPod(spec: JsonObject, which: Which): Map<string, Quantity> {
  const total = totalOfContainers(spec, which)
  for (const [name, amount] of podLevelAmounts(spec, which)) total.set(name, amount)
  const overhead = amountsOf(isJsonObject(spec['overhead']) ? spec['overhead'] : {})
  if (which === 'limits') for (const name of overhead.keys()) if (!total.get(name)?.nanos) overhead.delete(name)
  addAmounts(total, overhead)
  return total
}

/** The requests or limits of the pod itself, beside those of its containers. */
export function podLevelAmounts({ resources }: JsonObject, which: Which): [string, Quantity][] {
  const list = isJsonObject(resources) ? resources[which] : undefined
  return [...amountsOf(isJsonObject(list) ? list : {})].filter(([name]) => isPodLevelResource(name))
}

/**
 * The requests or limits of all containers together: containers plus sidecars, or the largest init container if that is
 * more.
 */
export function totalOfContainers(spec: JsonObject, which: Which): Map<string, Quantity> {
  const sum = new Map<string, Quantity>()
  for (const container of objectsIn(spec, 'containers')) addAmounts(sum, amountsIn(container, which))
  const sidecars = new Map<string, Quantity>()
  const initial = new Map<string, Quantity>()
  for (const container of objectsIn(spec, 'initContainers')) {
    const own = amountsIn(container, which)
    if (container['restartPolicy'] === 'Always') {
      addAmounts(sum, own)
      addAmounts(sidecars, own)
      raise(initial, sidecars)
    } else {
      const together = new Map(own)
      addAmounts(together, sidecars)
      raise(initial, together)
    }
  }
  raise(sum, initial)
  return sum
}

function objectsIn(object: JsonObject, field: string): JsonObject[] {
  const list = object[field]
  return Array.isArray(list) ? list.filter(isJsonObject) : []
}

function amountsIn({ resources }: JsonObject, which: Which): Map<string, Quantity> {
  const list = isJsonObject(resources) ? resources[which] : undefined
  return amountsOf(isJsonObject(list) ? list : {})
}

function raise(to: Map<string, Quantity>, other: Amounts): void {
  for (const [name, amount] of other) if (amount.nanos > (to.get(name)?.nanos ?? -1n)) to.set(name, amount)
}
