// Deletes many objects of one resource. One reconcile deletes a limited number, so that other keys are not kept
// waiting.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'

/** Maximum number of deletions per reconcile, which take some tenths of a second. */
const maxDeletions = 100
const pageSize = 500

/** The number of deletions that are left for one reconcile. */
export class DeletionBudget {
  #left: number

  constructor(deletions = maxDeletions) {
    this.#left = deletions
  }

  /** Takes one deletion from the budget; false if none is left. */
  take(): boolean {
    return this.#left-- > 0
  }
}

interface Scope {
  readonly gvr: GroupVersionResource
  /** Absent: all namespaces. */
  readonly namespace?: string
  /** Default: the default of the resource. */
  readonly propagationPolicy?: 'Background'
}

/** `finished`: every object was reached, `seen` is their number. Otherwise the budget was used up first. */
export type BatchResult = { readonly finished: true; readonly seen: number } | { readonly finished: false }

/**
 * Deletes all objects that are not being deleted yet, page by page, while the budget lasts. Rejects with StatusError.
 */
export async function deleteBatch(
  client: KubeClient,
  { gvr, namespace, propagationPolicy }: Scope,
  budget: DeletionBudget,
  signal: AbortSignal,
): Promise<BatchResult> {
  let seen = 0
  let next: string | undefined
  do {
    const page = {
      limit: pageSize,
      ...(next !== undefined && { continue: next }),
      ...(namespace !== undefined && { namespace }),
    }
    const list = await client.list(gvr, { ...page, metadataOnly: true, signal }).catch((error: unknown) => {
      // The continue token has expired: the next reconcile starts with the first page.
      if (next !== undefined && isStatusError(error, 'Expired')) return undefined
      throw error
    })
    if (list === undefined) return { finished: false }
    for (const { metadata } of list.items) {
      seen++
      if (metadata.deletionTimestamp !== undefined) continue
      if (!budget.take()) return { finished: false }
      const { name = '', uid } = metadata
      const ref = { name, ...(metadata.namespace !== undefined && { namespace: metadata.namespace }) }
      // The uid is a precondition: an object that was created again under this name is left to the next reconcile.
      const options = { ...(propagationPolicy && { propagationPolicy }), ...(uid !== undefined && { uid }), signal }
      await client.delete(gvr, ref, options).catch(tolerate('NotFound', 'Conflict'))
    }
    next = list.metadata.continue === '' ? undefined : list.metadata.continue
  } while (next !== undefined)
  return { finished: true, seen }
}
