// Conditions of apis.kcp.io, which have a severity and no observedGeneration.
import type { SharingCondition } from '#crds/index.ts'

export type SharingUpdate = Omit<SharingCondition, 'lastTransitionTime'>

/** The conditions with these replaced or added. `now`: RFC 3339. */
export function withConditions(
  conditions: readonly SharingCondition[] | undefined,
  updates: readonly SharingUpdate[],
  now: string,
): SharingCondition[] {
  const result = [...(conditions ?? [])]
  for (const update of updates) {
    const at = result.findIndex(({ type }) => type === update.type)
    const before = result[at]
    const lastTransitionTime = before?.status === update.status ? before.lastTransitionTime : now
    const condition: SharingCondition = { ...update, lastTransitionTime }
    if (at < 0) result.push(condition)
    else result[at] = condition
  }
  return result
}

/** A condition that is True, or False with a reason and a sentence. */
export function condition(
  type: string,
  problem?: { readonly reason: string; readonly message: string; readonly severity?: SharingCondition['severity'] },
): SharingUpdate {
  if (problem === undefined) return { type, status: 'True' }
  return {
    type,
    status: 'False',
    severity: problem.severity ?? 'Error',
    reason: problem.reason,
    message: problem.message,
  }
}
