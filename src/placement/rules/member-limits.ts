// The bounds on what may be requested of a member.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import { amountsOf, type Amounts } from '#apimachinery/quantity/index.ts'
import type { MemberCluster } from '#crds/index.ts'

/** By MemberCluster, which is a new object when it changes: every decision asks for the limits of all members. */
const known = new WeakMap<DeepReadonly<MemberCluster>, { readonly limits: Amounts | undefined }>()

/**
 * What may be requested of a member in all: `spec.capacity.limits`, else what its nodes can allocate, less the reserve. Undefined
 * where neither is known, or where it has no nodes yet. Computed once: `member` must not change.
 */
export function limitsOf(member: DeepReadonly<MemberCluster>): Amounts | undefined {
  const before = known.get(member)
  if (before !== undefined) return before.limits
  const limits = compute(member)
  known.set(member, { limits })
  return limits
}

function compute({ spec, status }: DeepReadonly<MemberCluster>): Amounts | undefined {
  const { limits, reservePercent = 0 } = spec?.capacity ?? {}
  const list = limits ?? status?.allocatable
  if (list === undefined || Object.keys(list).length === 0) return undefined
  const part = BigInt(100 - reservePercent)
  return new Map(
    [...amountsOf(list)].map(([name, { nanos, format }]) => [name, { nanos: (nanos * part) / 100n, format }]),
  )
}
