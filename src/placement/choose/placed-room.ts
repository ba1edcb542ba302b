// The rest of a limit of placed requests: a decision that exceeds it gives fewer replicas, or no member. Pure.
import { addAmounts, amountsText, increaseOf, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import type { Decision, Rejection } from '#placement/move/move-input.ts'
import type { Demand, PodDemand } from '#placement/rules/candidate.ts'
import { roomFor } from './choose-divided.ts'

/** What limits of logical clusters leave for one workload. */
export interface PlacedRoom {
  /** The rest without this workload, where there is a limit: of cpu, memory, pods. */
  readonly free: Amounts
  /** The limits, in words, such as `cpu of logical cluster "acme" and all below it, limited: 4`. */
  readonly limits: string
}

/** What the decision was made from. */
export interface RoomInput {
  readonly room?: PlacedRoom
  readonly demand: Demand
  /** Members with a copy now. */
  readonly current: readonly string[]
  /** How many replicas each of them has, or has available. */
  readonly present?: Readonly<Record<string, number>>
}

/** The reason of a workload that waits for room. */
export const limitExceededReason = 'LimitExceeded'

/**
 * The decision as far as the limits have room. Copies that run keep what they have: a limit that is lowered evicts
 * nothing. A move keeps its old copy until the new one serves, limit or not.
 */
export function withinRoom(decision: Decision, choice: RoomInput): Decision {
  const { room, demand, current } = choice
  const { wanted } = decision
  if (room === undefined || wanted.kind !== 'members') return decision
  const left = new Map<string, Quantity>(room.free)
  const isHere = (name: string): number => Number(current.includes(name))
  const granted = new Map<string, number | undefined>()
  const refused: string[] = []
  for (const name of wanted.names.toSorted((one, other) => isHere(other) - isHere(one))) {
    if (demand.pods === undefined) {
      if (isHere(name) === 1 || fits(demand.requests, left)) {
        granted.set(name, undefined)
        take(left, demand.requests)
      } else refused.push(`it needs ${needed(demand.requests, room.free)}`)
    } else grant(name, demand.pods, { decision, choice, left, granted, refused })
  }
  if (refused.length === 0) return decision
  const held: Rejection = {
    cluster: '',
    reason: limitExceededReason,
    message: `exceeded quota: ${room.limits}: ${refused.join('; ')}`,
  }
  if (granted.size === 0)
    return { wanted: { kind: 'undecided' }, held: [held, ...decision.held], rejected: [held, ...decision.rejected] }
  const shares = Object.fromEntries([...granted].filter((one): one is [string, number] => one[1] !== undefined))
  return {
    ...decision,
    wanted: { kind: 'members', names: wanted.names.filter((name) => granted.has(name)) },
    ...(Object.keys(shares).length > 0 && { shares }),
    held: [held, ...decision.held],
  }
}

interface Granting {
  readonly decision: Decision
  readonly choice: RoomInput
  readonly left: Map<string, Quantity>
  readonly granted: Map<string, number | undefined>
  readonly refused: string[]
}

function grant(name: string, pods: PodDemand, { decision, choice, left, granted, refused }: Granting): void {
  const isThere = choice.current.includes(name)
  const share = decision.shares?.[name]
  const wanted = share ?? pods.replicas
  const running = isThere ? (choice.present?.[name] ?? 0) : 0
  const count = Math.min(wanted, Math.max(running, roomFor({ ...pods, replicas: wanted }, left)))
  if (count < wanted) refused.push(`${count} of ${wanted} replicas run, each needs ${needed(pods.perPod, left)}`)
  // A copy that is there stays, with no pods if need be. Without pods, a new copy would only be confusing.
  if (count === 0 && wanted > 0 && !isThere) return
  granted.set(name, count === wanted ? share : count)
  const surge = count + pods.surge(count)
  take(
    left,
    new Map([...pods.perPod].map(([one, { nanos, format }]) => [one, { nanos: nanos * BigInt(surge), format }])),
  )
}

function fits(requests: Amounts, left: Amounts): boolean {
  return increaseOf(limited(requests, left), left).size === 0
}

function take(left: Map<string, Quantity>, requests: Amounts): void {
  addAmounts(left, limited(requests, left), -1)
}

function limited(requests: Amounts, left: Amounts): Amounts {
  return new Map([...requests].filter(([name]) => left.has(name)))
}

function needed(requests: Amounts, left: Amounts): string {
  return amountsText(limited(requests, left))
}
