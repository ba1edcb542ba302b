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
