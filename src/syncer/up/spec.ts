// Fields of a spec that controllers of the member decide: the volume of a claim, and the replicas that an autoscaler
// sets.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { contentHash, placedOn, sourceAnnotation } from '#crds/index.ts'
import { scaleTargetOf } from '#syncer/context/references.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { copyHere } from '#syncer/rules/entitlement.ts'
import { isScaled } from '#syncer/rules/scaled.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'

/** Copies the fields of the spec that controllers of the member decide upstream, where they differ. */
export async function reconcileSpec(synced: SyncedObject): Promise<void> {
  const here = copyHere(synced, synced.resource, synced.name)
  if (here === undefined) return
  const { object, copy } = here
  const fields = decidedFields(synced, object, copy)
  const [is, was] = [copy, object].map((one) => (one['spec'] ?? {}) as Record<string, unknown>)
  const changed = fields.filter((field) => is?.[field] !== undefined && is[field] !== was?.[field])
  if (changed.length === 0) return
  const spec = Object.fromEntries(changed.map((field) => [field, is?.[field]]))
  const metadata = { resourceVersion: object.metadata.resourceVersion }
  const { gvr, ref, signal } = synced
  await synced.upstreamClient.patch(gvr, ref, 'merge', { metadata, spec }, { signal })
}

function decidedFields(synced: SyncedObject, object: CachedObject, copy: CachedObject): readonly string[] {
  const { resource, row, member } = synced
  if (resource === 'persistentvolumeclaims') return ['volumeName', 'storageClassName']
  if (row.workload?.paths.replicas === undefined || !isScaled(synced, object)) return []
  // The replicas in one member are not those of the whole workload. A change by the tenant goes down first.
  if (placedOn(object as KubeObject)[member.name]?.replicas !== undefined) return []
  if (copy.metadata.annotations?.[sourceAnnotation] !== contentHash(object['spec'])) return []
  return isWithinBounds(synced, object, copy) ? ['replicas'] : []
}

/** Whether an autoscaler of the tenant allows the number of replicas that the copy has. */
function isWithinBounds(scope: Scope, { kind, metadata: { name } }: CachedObject, copy: CachedObject): boolean {
  const { replicas } = (copy['spec'] ?? {}) as { replicas?: unknown }
  if (typeof replicas !== 'number') return false
  for (const autoscaler of scope.allUpstream('horizontalpodautoscalers')) {
    const { minReplicas = 1, maxReplicas = 0 } = (autoscaler['spec'] ?? {}) as Partial<Record<string, number>>
    if (scaleTargetOf(autoscaler) === `${kind}/${name}` && minReplicas <= replicas && replicas <= maxReplicas)
      return true
  }
  return false
}
