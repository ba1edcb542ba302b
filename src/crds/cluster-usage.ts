// What logical clusters use: status.usage beside spec.limits, and how near a limit it is.
import { tryQuantity } from '#apimachinery/quantity/index.ts'
import type { Condition } from '#apimachinery/meta/index.ts'

/** What a logical cluster and all that share its limits use; limits below are counted as used. */
export interface ClusterUsage {
  /** Bytes, a quantity. */
  storage?: string
  objects?: number
  crds?: number
  watches?: number
  /** What the pods of placed workloads request, quantities. */
  cpu?: string
  memory?: string
  pods?: number
}

/** The fields of status.usage that the API server writes; the scheduler writes the others. */
export const servedUsage = ['storage', 'objects', 'crds', 'watches'] as const
export type UsageField = keyof ClusterUsage

/** The part of a limit from which on a logical cluster is told that it is near. */
export const nearShare = 0.8
/** Steps that status.usage shows: a hundredth of the limit, or without a limit, a twentieth of the value. */
const [stepOfLimit, stepOfValue] = [1 / 100, 1 / 20]

/** The number of a limit or of a usage; undefined if it is absent or no quantity. */
export function amountOfUsage(value: string | number | undefined): number | undefined {
  if (typeof value !== 'string') return value
  const quantity = tryQuantity(value)
  return quantity && Number(quantity.nanos) / 1e9
}

/** Whether the change is large enough to be written: each write costs, and people read the status, not programs. */
export function isUsageStep(before: number | undefined, now: number, limit: number | undefined): boolean {
  if (before === undefined) return true
  if (before === now) return false
  if (limit === undefined) return Math.abs(now - before) >= Math.max(1, before * stepOfValue)
  const levelOf = (used: number): number => (used >= limit ? 2 : used >= limit * nearShare ? 1 : 0)
  return levelOf(before) !== levelOf(now) || Math.abs(now - before) >= limit * stepOfLimit
}

/** Condition WithinLimits; undefined without limits or before anything is known. */
export function withinLimits(
  limits: Readonly<Partial<Record<UsageField, string | number>>> | undefined,
  usage: Readonly<ClusterUsage> | undefined,
): Pick<Condition, 'type' | 'status' | 'reason' | 'message'> | undefined {
  if (limits === undefined || usage === undefined) return undefined
  const [reached, near]: [string[], string[]] = [[], []]
  for (const field of Object.keys(usage) as UsageField[]) {
    const [limit, used] = [amountOfUsage(limits[field]), amountOfUsage(usage[field])]
    if (limit === undefined || used === undefined) continue
    const text = `${field} (limit ${String(limits[field])})`
    if (used >= limit) reached.push(text)
    else if (used >= limit * nearShare) near.push(text)
  }
  const type = 'WithinLimits'
  if (reached.length === 0 && near.length === 0)
    return { type, status: 'True', reason: 'RoomLeft', message: 'all usage is below 80 % of its limit' }
  const parts = [
    ...(reached.length > 0 ? [`nothing is left of ${reached.join(', ')}`] : []),
    ...(near.length > 0 ? [`more than 80 % is used of ${near.join(', ')}`] : []),
  ]
  return { type, status: 'False', reason: reached.length > 0 ? 'LimitReached' : 'NearLimit', message: parts.join('; ') }
}
