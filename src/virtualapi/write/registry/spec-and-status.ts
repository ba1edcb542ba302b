// Spec and status: the endpoints that may write each of them, and the changes that raise metadata.generation.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { cloneJson, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/**
 * Restores in `next` the fields that this endpoint may not write: the main endpoint keeps the old status, `status`
 * keeps everything else (metadata follows strategy.statusMeta).
 */
export function keepSpecOrStatus(
  strategy: ResourceDefinition['strategy'],
  next: KubeObject,
  old: KubeObject,
  subresource: string,
): void {
  if (subresource === 'status') {
    for (const member of Object.keys(next))
      if (member !== 'status' && member !== 'metadata') Reflect.deleteProperty(next, member)
    for (const [member, value] of Object.entries(old))
      if (member !== 'status' && member !== 'metadata') next[member] = value
    const { resourceVersion, labels: _labels, ...others } = next.metadata
    const { statusMeta = 'none' } = strategy
    if (statusMeta === 'all') return
    next.metadata = statusMeta === 'none' ? { ...old.metadata } : withLabels(others, old.metadata.labels)
    if (resourceVersion !== undefined) next.metadata.resourceVersion = resourceVersion
    return
  }
  if (strategy.hasStatus && subresource === '') resetStatus(next, old)
}

function withLabels(meta: ObjectMeta, labels: ObjectMeta['labels']): ObjectMeta {
  return labels === undefined ? meta : { ...meta, labels }
}

/** Gives `object` the status of `old`; removes it if `old` has none. */
export function resetStatus(object: KubeObject, old: KubeObject | undefined): void {
  if (old !== undefined && 'status' in old) object['status'] = cloneJson(old['status'])
  else delete object['status']
}

/** True if an update from `old` raises metadata.generation. */
export function generationChanged(
  strategy: ResourceDefinition['strategy'],
  next: KubeObject,
  old: KubeObject,
): boolean {
  if (strategy.countsChange !== undefined) return strategy.countsChange(next, old)
  return strategy.hasGeneration && specChanged(next, old, strategy.statusMembers)
}

/** True if anything besides metadata and the status members changed. */
function specChanged(next: KubeObject, old: KubeObject, statusMembers: readonly string[]): boolean {
  if (next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp) return true
  const ignored = new Set(['metadata', ...statusMembers])
  const members = new Set([...Object.keys(next), ...Object.keys(old)].filter((member) => !ignored.has(member)))
  return [...members].some((member) => !jsonEqual(next[member], old[member]))
}
