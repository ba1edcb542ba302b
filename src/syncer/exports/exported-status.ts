// The status of a custom resource in a member, as it is upstream. Pure.
import { cloneJson, isJsonObject, type KubeObject, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'

/**
 * The status of the copy with `observedGeneration`, its own and those of conditions, in generations of the upstream object: the
 * present one if the member has observed the copy and the copy `isCurrent`, else the one before.
 */
export function statusUp(
  live: DeepReadonly<KubeObject>,
  object: DeepReadonly<KubeObject>,
  isCurrent: boolean,
): Record<string, unknown> {
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
