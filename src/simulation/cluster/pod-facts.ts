// Functions about pods, numbers and conditions that several controllers need.
import type { Condition, IntOrPercent, Pod } from './objects.ts'

export function isReady({ status }: Pod): boolean {
  return readyCondition(status?.conditions)?.status === 'True'
}

function readyCondition(conditions: readonly Condition[] | undefined): Condition | undefined {
  return conditions?.find(({ type }) => type === 'Ready')
}

/** True for a pod that has neither ended nor is being deleted. */
export function isActive({ metadata, status }: Pod): boolean {
  return !hasEnded(status?.phase) && metadata.deletionTimestamp === undefined
}

export function hasEnded(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/**
 * Milliseconds until a ready pod counts as available; 0 if it does, undefined for a pod that is not ready.
 */
export function availableInMs(pod: Pod, minReadySeconds: number, nowMs: number): number | undefined {
  const ready = readyCondition(pod.status?.conditions)
  if (ready?.status !== 'True') return undefined
  if (minReadySeconds === 0) return 0
  return Math.max(0, Date.parse(ready.lastTransitionTime ?? '') + minReadySeconds * 1000 - nowMs)
}

/** How many pods are available, and when the next one will be, in seconds. */
export function countAvailable(
  pods: readonly Pod[],
  minReadySeconds = 0,
): { readonly available: number; readonly again?: { readonly requeueAfterSeconds: number } } {
  const waits = pods.flatMap((pod) => availableInMs(pod, minReadySeconds, Date.now()) ?? [])
  const later = waits.filter((ms) => ms > 0)
  const available = waits.length - later.length
  return later.length === 0
    ? { available }
    : { available, again: { requeueAfterSeconds: Math.min(...later) / 1000 + 0.1 } }
}

/** A number or a percentage of `total`, rounded up or down. */
export function numberOf(value: IntOrPercent | undefined, total: number, round: 'up' | 'down'): number {
  if (typeof value === 'number') return value
  const part = (Number.parseInt(value ?? '0', 10) * total) / 100
  return round === 'up' ? Math.ceil(part) : Math.floor(part)
}

type Written = Omit<Condition, 'lastTransitionTime'>

/** The conditions with `next` added, or replaced by type. lastTransitionTime changes only if the status changes. */
export function withCondition(conditions: readonly Condition[] = [], next: Written, now: string): Condition[] {
  const before = conditions.find(({ type }) => type === next.type)
  const since = before?.status === next.status ? (before.lastTransitionTime ?? now) : now
  const written = { ...next, lastTransitionTime: since }
  return before === undefined ? [...conditions, written] : conditions.map((one) => (one === before ? written : one))
}
