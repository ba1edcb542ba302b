// A workload that needs more where it runs than an admin lets the member have: it runs as many replicas as fit. Pure.
import type { Candidate, Demand } from '#placement/rules/candidate.ts'
import { freeOf, refuseFull } from './filters.ts'
import type { Rejection } from '#placement/move/decision.ts'
import { roomFor } from './room.ts'

export interface Outgrown {
  /** How many replicas it may run there. */
  readonly replicas: number
  readonly rejection: Rejection
}

/** Undefined if all replicas fit, or run already. `present`: how many are available there now, which are not taken away. */
export function outgrown(candidate: Candidate, demand: Demand, present: number): Outgrown | undefined {
  const { name, isBounded = false, limits, requested } = candidate
  const { pods } = demand
  const message = refuseFull(candidate, demand)
  if (!isBounded || message === undefined || limits === undefined || pods === undefined) return undefined
  const replicas = Math.max(present, roomFor(pods, freeOf(limits, requested)))
  if (replicas >= pods.replicas) return undefined
  const told = `${replicas} of ${pods.replicas} replicas run there: ${message}`
  return { replicas, rejection: { cluster: name, reason: 'InsufficientCapacity', message: told } }
}
