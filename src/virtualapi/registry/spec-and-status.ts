// Spec and status: which endpoint writes which, and which changes a generation counts.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, ObjectMeta } from '../../apimachinery/meta/index.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'

/** The main endpoint does not write status, the status endpoint writes nothing else (labels of built-in kinds apart). */
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

/** Gives an object the status that the old one has; none where that has none. */
export function resetStatus(object: KubeObject, old: KubeObject | undefined): void {
  if (old !== undefined && 'status' in old) object['status'] = structuredClone(old['status'])
  else delete object['status']
}

/** True if an update from `old` counts in metadata.generation. */
export function generationChanged(
  strategy: ResourceDefinition['strategy'],
  next: KubeObject,
  old: KubeObject,
): boolean {
  if (strategy.countsChange !== undefined) return strategy.countsChange(next, old)
  return strategy.hasGeneration && specChanged(next, old, strategy.statusMembers)
}

/** True if anything besides metadata and the members of the status changed. */
function specChanged(next: KubeObject, old: KubeObject, statusMembers: readonly string[]): boolean {
  if (next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp) return true
  const ignored = new Set(['metadata', ...statusMembers])
  const members = new Set([...Object.keys(next), ...Object.keys(old)].filter((member) => !ignored.has(member)))
  return [...members].some((member) => !isDeepStrictEqual(next[member], old[member]))
}
