// The status of a workload that runs in several members, merged from what each member reports. Pure.
import type { CopyState, CountField, StatusCondition, WorkloadMemberStatus } from '../crds/index.ts'

export interface MergeInput {
  /** Upstream generation now. */
  readonly generation: number
  /** Content hash of the upstream spec now. */
  readonly spec: string
  /** The present status upstream: observedGeneration does not decrease, and unchanged conditions keep their times. */
  readonly previous: Readonly<Record<string, unknown>>
  /** The counts that the kind of workload has. */
  readonly counts: readonly CountField[]
  /** What members report, by member. */
  readonly reported: Readonly<Record<string, WorkloadMemberStatus>>
  /** States of the copies, by member: the scheduler's decision. */
  readonly states: Readonly<Record<string, CopyState>>
  /** RFC 3339: for conditions that change. */
  readonly now: string
}

const worstFirst = ['False', 'Unknown', 'True']

/**
 * Counts are summed. Of each condition, the worst among the members that serve is taken, or among all while none serves.
 * observedGeneration advances only when every target has observed it: `kubectl rollout status` relies on it.
 */
export function mergeWorkloadStatus(input: MergeInput): Record<string, unknown> {
  const { generation, previous, reported, counts, states, now } = input
  const status: Record<string, unknown> = {}
  const members = Object.keys(reported).sort()
  for (const count of counts) {
    const sum = members.reduce((total, member) => total + (reported[member]?.[count] ?? 0), 0)
    if (sum > 0) status[count] = sum
  }
  const observed = observedGeneration(input)
  const before = typeof previous['observedGeneration'] === 'number' ? previous['observedGeneration'] : 0
  const shown = Math.max(observed, Math.min(before, generation))
  if (shown > 0) status['observedGeneration'] = shown
  const conditions = mergeConditions(reported, states, previous, now)
  if (conditions.length > 0) status['conditions'] = conditions
  return status
}

/** Draining and terminating copies do not count: they do not get the present generation. */
function observedGeneration({ reported, states, generation, spec }: MergeInput): number {
  const targets = Object.entries(states).filter(([, state]) => !['Draining', 'Terminating', 'Held'].includes(state))
  // Without any target, nothing has been observed.
  const all = targets.length > 0 && targets.every(([member]) => reported[member]?.observed === spec)
  return all ? generation : 0
}

function mergeConditions(
  reported: MergeInput['reported'],
  states: MergeInput['states'],
  previous: MergeInput['previous'],
  now: string,
): StatusCondition[] {
  const members = Object.keys(reported).sort()
  const serving = members.filter((member) => states[member] === 'Serving')
  const asked = serving.length > 0 ? serving : members
  const found = new Map<string, StatusCondition>()
  for (const member of asked) {
    for (const condition of reported[member]?.conditions ?? []) {
      const known = found.get(condition.type)
      if (known === undefined || rank(condition) < rank(known)) found.set(condition.type, condition)
    }
  }
  const errors = members.filter((member) => reported[member]?.error !== undefined)
  if (errors.length > 0)
    found.set(
      'Synced',
      syncedCondition(errors.map((member) => `${member}: ${reported[member]?.error ?? ''}`).join('; '), previous, now),
    )
  // Condition Placed is written by the scheduler, not by members.
  const placed = conditionsOf(previous).find(({ type }) => type === 'Placed')
  if (placed !== undefined) found.set(placed.type, placed)
  return [...found.values()].sort((a, b) => (a.type < b.type ? -1 : 1))
}

function syncedCondition(message: string, previous: MergeInput['previous'], now: string): StatusCondition {
  const before = conditionsOf(previous).find(({ type }) => type === 'Synced')
  return {
    type: 'Synced',
    status: 'False',
    reason: 'SyncFailed',
    message,
    lastTransitionTime: before?.lastTransitionTime ?? now,
    lastUpdateTime: before?.message === message ? (before.lastUpdateTime ?? now) : now,
  }
}

function conditionsOf(status: MergeInput['previous']): StatusCondition[] {
  return Array.isArray(status['conditions']) ? (status['conditions'] as StatusCondition[]) : []
}

function rank({ status }: StatusCondition): number {
  return worstFirst.indexOf(status)
}
