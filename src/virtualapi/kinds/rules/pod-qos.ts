// The QoS class of a pod, which is set on creation from the requests and limits of its containers.
import type { V1PodSpec, V1ResourceRequirements } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'

const compute = ['cpu', 'memory']

/** Guaranteed, Burstable or BestEffort. */
export function qosClassOf(spec: Data<V1PodSpec>): string {
  const containers: readonly { resources?: V1ResourceRequirements | undefined }[] =
    spec.resources === undefined
      ? [...((spec.containers as typeof spec.containers | null) ?? []), ...(spec.initContainers ?? [])]
      : [spec]
  const requests = new Map<string, bigint>()
  const limits = new Map<string, bigint>()
  let allLimited = true
  for (const { resources } of containers) {
    addTo(requests, resources?.requests)
    const limited = addTo(limits, resources?.limits)
    if (!compute.every((name) => limited.has(name))) allLimited = false
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  const guaranteed =
    allLimited && requests.size === limits.size && [...requests].every(([name, amount]) => limits.get(name) === amount)
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

/** Adds the positive amounts of cpu and memory to `sum`; returns the names of those found. */
function addTo(sum: Map<string, bigint>, amounts: Readonly<Record<string, string>> = {}): Set<string> {
  const found = new Set<string>()
  for (const name of compute) {
    const { nanos } = quantityOf(amounts[name] ?? '0')
    if (nanos <= 0n) continue
    found.add(name)
    sum.set(name, (sum.get(name) ?? 0n) + nanos)
  }
  return found
}
