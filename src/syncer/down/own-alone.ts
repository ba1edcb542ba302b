// The syncer as the only owner of what it applies in an adopted copy, from its first change there: a field that the
// tenant removes would stay as long as its former manager in the member owns it, too.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { syncerFieldManager } from '#crds/index.ts'

/** Removes all other managers from an object in the member, except those of subresources. */
export async function ownAlone(
  downstream: KubeClient,
  gvr: GroupVersionResource,
  { live, signal }: { readonly live: KubeObject; readonly signal: AbortSignal },
): Promise<void> {
  const { managedFields = [], uid, resourceVersion, namespace, name = '' } = live.metadata
  const entries = managedFields as readonly { readonly manager?: string; readonly subresource?: string }[]
  const isOwner = entries.some(({ manager, subresource }) => manager === syncerFieldManager && !subresource)
  const kept = entries.filter(({ manager, subresource }) => manager === syncerFieldManager || subresource)
  if (!isOwner || kept.length === entries.length) return
  const ref = { ...(namespace !== undefined && { namespace }), name }
  await downstream.patch(gvr, ref, 'merge', { metadata: { uid, resourceVersion, managedFields: kept } }, { signal })
}
