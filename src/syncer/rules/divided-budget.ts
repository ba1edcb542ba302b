// One member's share of the number of pods of a divided workload that may be unavailable: in its PodDisruptionBudgets,
// and in its rollout.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import { budgetShare, type Budget } from '#placement/index.ts'
import type { NamespaceView } from '#syncer/context/namespace-view.ts'

/** The copy of a budget with the part that this member has of it; the same copy if it selects no divided workload. */
export function withBudgetShare(copy: KubeObject, { divided }: NamespaceView, member: string): KubeObject {
  if (divided.size === 0) return copy
  const spec = (copy['spec'] ?? {}) as Budget & { selector?: LabelSelectorSource }
  const selector = selectorFromObject(spec.selector)
  const shares = new Map<string, number>()
  let moving = 0
  for (const { podLabels, replicas, isMoving } of divided.values()) {
    if (!selector.matches(podLabels)) continue
    if (isMoving) moving++
    for (const [name, count] of Object.entries(replicas)) shares.set(name, (shares.get(name) ?? 0) + count)
  }
  if (shares.size === 0) return copy
  const { minAvailable: _, maxUnavailable: __, ...rest } = spec
  const part = budgetShare(withoutMoving(spec, moving), { member, shares: Object.fromEntries(shares) })
  return { ...cloneJson(copy), spec: { ...cloneJson(rest), ...part } }
}

/**
 * The budget with `moving` fewer disruptions, because that many pods may be away while they move. A percentage stays as
 * it is.
 */
function withoutMoving({ minAvailable, maxUnavailable }: Budget, moving: number): Budget {
  if (typeof minAvailable === 'number') return { minAvailable: minAvailable + moving }
  if (typeof maxUnavailable === 'number') return { maxUnavailable: Math.max(0, maxUnavailable - moving) }
  return {
    ...(minAvailable !== undefined && { minAvailable }),
    ...(maxUnavailable !== undefined && { maxUnavailable }),
  }
}

interface RollingUpdate {
  readonly maxUnavailable?: number | string
  readonly maxSurge?: number | string
}

/**
 * The copy of a Deployment, with the member's share of maxUnavailable. A percentage stays as it is, because it applies
 * only to the replicas of the member. A member whose share is 0 makes at least one more pod during a rollout instead.
 */
export function withRolloutShare(copy: KubeObject, { divided }: NamespaceView, member: string): KubeObject {
  const { replicas: shares } = divided.get(`${copy.kind}/${copy.metadata.name}`) ?? {}
  const { strategy, ...spec } = (copy['spec'] ?? {}) as { strategy?: { rollingUpdate?: RollingUpdate } }
  const { maxUnavailable, maxSurge } = strategy?.rollingUpdate ?? {}
  if (copy.kind !== 'Deployment' || shares === undefined || typeof maxUnavailable !== 'number') return copy
  const { maxUnavailable: part = 0 } = budgetShare({ maxUnavailable }, { member, shares })
  const hasNoSurge = maxSurge === 0 || maxSurge === '0%'
  const rollingUpdate = {
    ...strategy?.rollingUpdate,
    maxUnavailable: part,
    ...(part === 0 && hasNoSurge && { maxSurge: 1 }),
  }
  return { ...cloneJson(copy), spec: { ...cloneJson(spec), strategy: { ...cloneJson(strategy), rollingUpdate } } }
}
