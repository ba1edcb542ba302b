// What a visit must ask an API for: whether the logical cluster is served, and which of its objects members still hold.
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { memberClusters } from '#crds/index.ts'
import type { ContentLeft } from './content-left.ts'
import { findContent } from './find-content.ts'
import type { Observed } from './plan.ts'

/** Asks the API of the logical cluster for a namespace. Rejects with its error if `mayThrow`, else reports it. */
export async function probe(
  virtual: Pick<KubeClient, 'raw'>,
  { mayThrow, signal }: { readonly mayThrow: boolean; readonly signal: AbortSignal },
): Promise<NonNullable<Observed['served']>> {
  try {
    await virtual.raw('/api/v1/namespaces/default', { signal })
    return { ok: true }
  } catch (error) {
    signal.throwIfAborted()
    if (mayThrow) throw error
    return { ok: false, message: `its API does not answer: ${(error as Error).message}` }
  }
}

/**
 * The objects that must be gone before the logical cluster can be purged. Asks nothing if there are no members. `clusters` is
 * the API with the MemberClusters: it is asked which exist, because a cache alone is no reason to drop a finalizer.
 */
export async function inspectContent(
  virtual: KubeClient,
  clusters: KubeClient,
  { hasMembers, signal }: { readonly hasMembers: boolean; readonly signal: AbortSignal },
): Promise<ContentLeft> {
  const nothing = { total: 0, held: [], orphaned: [], counts: [] }
  if (!hasMembers) return nothing
  const { items } = await clusters.list<KubeObject>(memberClusters, { metadataOnly: true, signal })
  try {
    return await findContent(virtual, new Set(items.map(({ metadata }) => metadata.name ?? '')), signal)
  } catch (error) {
    // The server does not know the logical cluster any more: it has no objects.
    if (isStatusError(error, 'NotFound')) return nothing
    throw error
  }
}
