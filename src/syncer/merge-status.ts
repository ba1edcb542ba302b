// What an object that runs in several members is like as a whole: a pure merge of what each member says.
import type { CopyState, DeploymentPiece, PieceCondition } from '../crds/index.ts'

export interface MergeInput {
  /** Upstream generation now. */
  readonly generation: number
  /** Content hash of the upstream spec now. */
  readonly spec: string
  /** What the status upstream says so far: nothing goes back, and times stay where nothing changed. */
  readonly previous: Readonly<Record<string, unknown>>
  readonly pieces: Readonly<Record<string, DeploymentPiece>>
  /** Members that are to have a copy, by the scheduler's decision. */
  readonly states: Readonly<Record<string, CopyState>>
  /** RFC 3339: for conditions that turn. */
  readonly now: string
}

const counts = ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'] as const
const worstFirst = ['False', 'Unknown', 'True']

/**
 * The status of a Deployment: sums of counts; of conditions the worst among the members that serve, or among all while
 * none does; observedGeneration only when every target has observed it, so that `rollout status` tells the truth.
 */
export function mergeDeploymentStatus(input: MergeInput): Record<string, unknown> {
  const { generation, previous, pieces, states, now } = input
  const status: Record<string, unknown> = {}
  const members = Object.keys(pieces).sort()
  for (const count of counts) {
    const sum = members.reduce((total, member) => total + (pieces[member]?.[count] ?? 0), 0)
    if (sum > 0) status[count] = sum
  }
  const observed = observedGeneration(input)
  const before = typeof previous['observedGeneration'] === 'number' ? previous['observedGeneration'] : 0
  const shown = Math.max(observed, Math.min(before, generation))
  if (shown > 0) status['observedGeneration'] = shown
  const conditions = mergeConditions(pieces, states, previous, now)
  if (conditions.length > 0) status['conditions'] = conditions
  return status
}

/** Draining and leaving copies are not asked: the object's present generation is not for them. */
function observedGeneration({ pieces, states, generation, spec }: MergeInput): number {
  const targets = Object.entries(states).filter(([, state]) => !['Draining', 'Terminating', 'Held'].includes(state))
  // No target at all is not "all of them" (I2).
  const all = targets.length > 0 && targets.every(([member]) => pieces[member]?.observed === spec)
  return all ? generation : 0
}

function mergeConditions(
  pieces: MergeInput['pieces'],
  states: MergeInput['states'],
  previous: MergeInput['previous'],
  now: string,
): PieceCondition[] {
  const members = Object.keys(pieces).sort()
  const serving = members.filter((member) => states[member] === 'Serving')
  const asked = serving.length > 0 ? serving : members
  const found = new Map<string, PieceCondition>()
  for (const member of asked) {
    for (const condition of pieces[member]?.conditions ?? []) {
      const known = found.get(condition.type)
      if (known === undefined || rank(condition) < rank(known)) found.set(condition.type, condition)
    }
  }
  const errors = members.filter((member) => pieces[member]?.error !== undefined)
  if (errors.length > 0)
    found.set(
      'Synced',
      syncedCondition(errors.map((member) => `${member}: ${pieces[member]?.error ?? ''}`).join('; '), previous, now),
    )
  // The scheduler's word, not a member's.
  const placed = conditionsOf(previous).find(({ type }) => type === 'Placed')
  if (placed !== undefined) found.set(placed.type, placed)
  return [...found.values()].sort((a, b) => (a.type < b.type ? -1 : 1))
}

function syncedCondition(message: string, previous: MergeInput['previous'], now: string): PieceCondition {
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

function conditionsOf(status: MergeInput['previous']): PieceCondition[] {
  return Array.isArray(status['conditions']) ? (status['conditions'] as PieceCondition[]) : []
}

function rank({ status }: PieceCondition): number {
  return worstFirst.indexOf(status)
}
