// Fields of a spec that controllers of the member decide: the volume of a claim, and the replicas that an autoscaler sets.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { contentHash, placedOn, sourceAnnotation } from '#crds/index.ts'
import { isScaled } from '#syncer/rules/scaled.ts'
import type { SyncedKind } from '#syncer/rules/synced-kinds.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { copyHere } from '#syncer/rules/entitlement.ts'
import { scaleTargetOf } from '#syncer/context/references.ts'
import type { SyncContext, Visit } from '#syncer/context/sync-context.ts'

/** Copies them upstream, where they differ. */
export async function visitSpec(
  context: SyncContext,
  kind: SyncedKind,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const here = copyHere(context, kind.resource, visit)
  if (here === undefined) return
  const { object, copy } = here
  const fields = decidedFields(context, kind, { object, copy }, visit)
  const [is, was] = [copy, object].map((one) => (one['spec'] ?? {}) as Record<string, unknown>)
  const changed = fields.filter((field) => is?.[field] !== undefined && is[field] !== was?.[field])
  if (changed.length === 0) return
  const { cluster, namespace, name } = visit
  const spec = Object.fromEntries(changed.map((field) => [field, is?.[field]]))
  const metadata = { resourceVersion: object.metadata.resourceVersion }
  await context.upstream
    .client(cluster)
    .patch(gvrs[kind.resource], { namespace, name }, 'merge', { metadata, spec }, { signal })
}

function decidedFields(
  context: SyncContext,
  kind: SyncedKind,
  { object, copy }: Readonly<Record<'object' | 'copy', DeepReadonly<KubeObject>>>,
  visit: Visit,
): readonly string[] {
  if (kind.resource === 'persistentvolumeclaims') return ['volumeName', 'storageClassName']
  if (kind.workload?.paths.replicas === undefined || !isScaled(context, object, visit)) return []
  // The number in one member is not that of all. A change by the tenant goes down first.
  if (placedOn(object as KubeObject)[context.member.name]?.replicas !== undefined) return []
  if (copy.metadata.annotations?.[sourceAnnotation] !== contentHash(object['spec'])) return []
  return isWithinBounds(context, object, copy, visit) ? ['replicas'] : []
}

/** Whether an autoscaler of the tenant allows the number of replicas that the copy has. */
function isWithinBounds(
  context: SyncContext,
  { kind }: DeepReadonly<KubeObject>,
  copy: DeepReadonly<KubeObject>,
  { cluster, namespace, name }: Visit,
): boolean {
  const { replicas } = (copy['spec'] ?? {}) as { replicas?: unknown }
  if (typeof replicas !== 'number') return false
  for (const autoscaler of context.upstreamIn('horizontalpodautoscalers', cluster, namespace)) {
    const { minReplicas = 1, maxReplicas = 0 } = (autoscaler['spec'] ?? {}) as Partial<Record<string, number>>
    if (scaleTargetOf(autoscaler) === `${kind}/${name}` && minReplicas <= replicas && replicas <= maxReplicas)
      return true
  }
  return false
}
