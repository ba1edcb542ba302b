// The status of a custom resource in a member, as it is upstream. Pure.
import { cloneJson, isJsonNumber, isJsonObject } from '#apimachinery/meta/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/**
 * The status of the copy. Each `observedGeneration`, of the status and of its conditions, becomes a generation of the
 * upstream object: the present one if the member has observed the copy and the copy `isCurrent`, else the one before.
 */
export function statusUp(live: CachedObject, object: CachedObject, isCurrent: boolean): Record<string, unknown> {
  const status = cloneJson<Record<string, unknown>>((live['status'] ?? {}) as Record<string, unknown>)
  const { generation = 0 } = object.metadata
  const translate = (holder: Record<string, unknown>): void => {
    if (!isJsonNumber(holder['observedGeneration'])) return
    const hasSeen = isCurrent && holder['observedGeneration'] >= (live.metadata.generation ?? 0)
    holder['observedGeneration'] = hasSeen ? generation : Math.max(0, generation - 1)
  }
  translate(status)
  if (Array.isArray(status['conditions']))
    for (const condition of status['conditions'] as unknown[]) if (isJsonObject(condition)) translate(condition)
  return status
}

/**
 * Whether the controller of the member has processed the copy and finds it well, by the conventions of conditions. A
 * status without any of these fields says nothing against it, unless the object had them in another member.
 */
export function isHealthy(live: CachedObject, object: CachedObject): boolean {
  const status = (live['status'] ?? {}) as Record<string, unknown>
  const { generation = 0 } = live.metadata
  const isLate = (holder: Record<string, unknown>): boolean =>
    isJsonNumber(holder['observedGeneration']) && holder['observedGeneration'] < generation
  if (isLate(status)) return false
  const conditions = conditionsOf(live)
  const has = (wanted: unknown): boolean => conditions.some(({ type }) => type === wanted)
  const expected = conditionsOf(object).filter(({ type }) => type === 'Ready' || type === 'Available')
  if (!expected.every(({ type }) => has(type))) return false
  return conditions.every((condition) => {
    const { type, status: value } = condition
    if (type === 'Ready' || type === 'Available') return value === 'True' && !isLate(condition)
    return (type !== 'Stalled' && type !== 'Reconciling') || value !== 'True'
  })
}

function conditionsOf(object: CachedObject): Record<string, unknown>[] {
  const { conditions } = (object['status'] ?? {}) as { conditions?: unknown }
  return Array.isArray(conditions) ? conditions.filter(isJsonObject) : []
}
