// Deletes many objects of one kind, as many in one visit as others can wait for.
import type { GroupVersionResource } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { KubeClient } from '../client/index.ts'

/** Deletions of one visit: some tenths of a second. */
const maxDeletions = 100
const pageSize = 500

/** What one visit may still delete. */
export class VisitBudget {
  #left = maxDeletions

  /** False where it is used up. */
  take(): boolean {
    return this.#left-- > 0
  }
}

interface Scope {
  /** Absent: of all namespaces. */
  readonly namespace?: string
  /** Default: that of the resource. */
  readonly propagationPolicy?: 'Background'
}

/**
 * Deletes what is not being deleted already, page by page. `all`: came to the end, of so many objects; `some`: the visit has done
 * enough. Rejects StatusError.
 */
export async function deleteSome(
  client: KubeClient,
  gvr: GroupVersionResource,
  { namespace, propagationPolicy }: Scope,
  budget: VisitBudget,
  signal: AbortSignal,
): Promise<{ readonly done: 'all'; readonly seen: number } | { readonly done: 'some' }> {
  let seen = 0
  let next: string | undefined
  do {
    const page = {
      limit: pageSize,
      ...(next !== undefined && { continue: next }),
      ...(namespace !== undefined && { namespace }),
    }
    const list = await client.list(gvr, { ...page, metadataOnly: true, signal }).catch((error: unknown) => {
      // The pages are of a moment that is forgotten: the next visit begins anew.
      if (next !== undefined && isStatusError(error, 'Expired')) return undefined
      throw error
    })
    if (list === undefined) return { done: 'some' }
    for (const { metadata } of list.items) {
      const { name = '', namespace: home, uid, deletionTimestamp } = metadata
      seen++
      if (deletionTimestamp !== undefined) continue
      if (!budget.take()) return { done: 'some' }
      const ref = { name, ...(home === undefined ? {} : { namespace: home }) }
      // By uid: something made anew under the name meanwhile is looked at in the next pass.
      const how = { ...(propagationPolicy && { propagationPolicy }), ...(uid === undefined ? {} : { uid }), signal }
      await client.delete(gvr, ref, how).catch(tolerate('NotFound', 'Conflict'))
    }
    next = list.metadata.continue === '' ? undefined : list.metadata.continue
  } while (next !== undefined)
  return { done: 'all', seen }
}
