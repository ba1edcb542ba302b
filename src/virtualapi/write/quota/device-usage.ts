// The usage of a ResourceClaim in a quota (k8s.io/kubernetes/pkg/quota/v1/evaluator/core/resource_claims.go).
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Amounts, Quantity } from '#apimachinery/quantity/index.ts'

export const resourceClaims = 'resourceclaims.resource.k8s.io'
const countName = `count/${resourceClaims}`
const classSuffix = '.deviceclass.resource.k8s.io/devices'
/**
 * The most devices that one claim can get (AllocationResultsMaxSize). A request with the mode All counts as this many.
 */
const maxDevices = 32

interface DeviceRequest {
  readonly deviceClassName?: string
  readonly allocationMode?: string
  readonly count?: number
}

interface ClaimSpec {
  readonly devices?: {
    readonly requests?: readonly {
      readonly exactly?: DeviceRequest
      readonly firstAvailable?: readonly DeviceRequest[]
    }[]
  }
}

/** True if a ResourceClaim counts for this name in spec.hard. */
export function claimCountsFor(name: string): boolean {
  return name === countName || name.endsWith(classSuffix)
}

/**
 * The usage of a claim: the claim itself, and the number of devices that it requests of each device class. Of
 * alternatives, the largest number of each class counts.
 */
export function deviceUsage(claim: KubeObject): Amounts {
  const { devices } = (claim['spec'] ?? {}) as ClaimSpec
  const counts = new Map([[countName, 1]])
  for (const { exactly, firstAvailable = [] } of devices?.requests ?? [])
    for (const [className, count] of mostOfEachClass(exactly === undefined ? firstAvailable : [exactly])) {
      const name = `${className}${classSuffix}`
      counts.set(name, (counts.get(name) ?? 0) + count)
    }
  return new Map([...counts].map(([name, count]) => [name, numberOf(count)]))
}

function mostOfEachClass(requests: readonly DeviceRequest[]): Map<string, number> {
  const most = new Map<string, number>()
  for (const { deviceClassName = '', allocationMode, count = 0 } of requests) {
    const asked = allocationMode === 'All' ? maxDevices : allocationMode === 'ExactCount' ? count : 0
    most.set(deviceClassName, Math.max(asked, most.get(deviceClassName) ?? 0))
  }
  return most
}

function numberOf(count: number): Quantity {
  return { nanos: BigInt(count) * 1_000_000_000n, format: 'DecimalSI' }
}
