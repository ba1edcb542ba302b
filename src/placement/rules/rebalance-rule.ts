// The wishes of admins and tenants about rebalancing a workload, and its current move for balance. Pure.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { newestMove, rebalanceAnnotation, type PlacedOn } from '#crds/index.ts'
import type { ApplicableRules } from './applicable-rules.ts'
import { byRank } from './target.ts'

type CachedObject = DeepReadonly<KubeObject>

export interface RebalanceRule {
  /** The name of the admin's Placement. */
  readonly placement: string
  /** Why the workload is not moved for balance; absent if it may be. */
  readonly optOut?: string
  /** How much fuller, in percent points, the member must be that it leaves. */
  readonly thresholdPercent: number
  /** How many workloads move for this Placement at the same time. */
  readonly maxMoves: number
  /** How long a workload stays after its last move. */
  readonly cooldownSeconds: number
}

/** The move of a workload from a fuller to an emptier member. */
export interface Rebalancing {
  readonly from: string
  readonly to: string
  /** Why, for people. */
  readonly message: string
  /** Whether the move is withdrawn, because the new copy has had its time or nobody wants the move any more. */
  readonly isOver: boolean
  /** In Unix milliseconds: when it will be over. Absent while it has not begun. */
  readonly overAtMs?: number
}

/** After how long a new copy that has not taken over is withdrawn: the old one runs, so nothing is lost. */
export const rebalanceGiveUpMs = 600_000

/**
 * The rule of the admins' Placements: those for this logical cluster before those for all, then by rank. Undefined:
 * rebalancing is off. `objects`: the workload and its namespace, whose annotation may opt out.
 */
export function rebalanceRule(
  { ofCluster, global }: ApplicableRules,
  objects: readonly (CachedObject | undefined)[],
): RebalanceRule | undefined {
  for (const level of [ofCluster, global]) {
    const [first] = level.filter(({ rebalance }) => rebalance !== undefined).toSorted(byRank)
    if (first?.rebalance === undefined) continue
    const { mode = 'Move', thresholdPercent = 20, maxMoves = 2, cooldownSeconds = 3600 } = first.rebalance
    const optOut =
      mode === 'Never' ? `Placement "${first.name}" of the administrators does not move it` : optOutOf(objects)
    const rule = { placement: first.name, thresholdPercent, maxMoves, cooldownSeconds }
    return optOut === undefined ? rule : { ...rule, optOut }
  }
  return undefined
}

function optOutOf(objects: readonly (CachedObject | undefined)[]): string | undefined {
  const found = objects.find((object) => object?.metadata.annotations?.[rebalanceAnnotation] === 'never')
  return (
    found &&
    `annotation ${rebalanceAnnotation} of the ${found.kind === 'Namespace' ? 'namespace' : 'workload'} opts out`
  )
}

/**
 * The move for balance that begins, or that the newest entry of the history began and that has not ended. Written
 * nowhere else, so that it and the decision are one write.
 */
export function rebalancingOf(
  workload: CachedObject,
  placed: PlacedOn,
  {
    rule,
    begins,
    nowMs,
  }: { readonly rule: RebalanceRule | undefined; readonly begins: Rebalancing | undefined; readonly nowMs: number },
): Rebalancing | undefined {
  // Most workloads have one copy: their history is not parsed.
  const move = Object.keys(placed).length > 1 ? newestMove(workload) : undefined
  if (move?.cause !== 'Rebalance') return begins
  const [from = '', ...otherSources] = move.from
  const [to = '', ...others] = move.to
  const [source, copy] = [placed[from], placed[to]]
  if (otherSources.length > 0 || others.length > 0 || source === undefined || copy === undefined) return begins
  // Where the old copy has begun to end, going on is the shortest way.
  const isLeaving = source.state !== 'Serving'
  const overAtMs = move.timeMs + rebalanceGiveUpMs
  const isWanted = rule !== undefined && rule.optOut === undefined && nowMs < overAtMs
  return { from, to, message: move.message, isOver: !isLeaving && !isWanted, overAtMs }
}
