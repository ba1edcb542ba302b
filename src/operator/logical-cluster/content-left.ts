// The objects of a logical cluster that members still run: they must be gone before the rest can be purged.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'

/** An object with the finalizer of a syncer. */
export interface HeldObject {
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly name: string
  readonly uid: string
  readonly deleting: boolean
  /** Finalizers of tenants hold it: only a deletion in the foreground ends its pods while they do. */
  readonly isHeldByOthers: boolean
  /** The finalizers of syncers; each names a member. */
  readonly finalizers: readonly string[]
}

export interface OrphanedObject {
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly name: string
  readonly resourceVersion: string
  /** Without those of members that do not exist. */
  readonly keptFinalizers: readonly string[]
}

export interface ContentLeft {
  readonly total: number
  /** At most maxHeld of them, without those whose pods are being deleted. */
  readonly held: readonly HeldObject[]
  /** At most maxHeld objects with a finalizer of a member that does not exist: no syncer will ever remove it. */
  readonly orphaned: readonly OrphanedObject[]
  readonly counts: readonly { readonly resource: string; readonly finalizer: string; readonly count: number }[]
}

/** Objects that one visit deletes. The next visit deletes more. */
export const maxHeld = 500

const maxLines = 20

/** One sentence for a condition: what is left, and which finalizers hold it. */
export function describeContent({ total, counts }: ContentLeft): string {
  const lines = counts.map(({ resource, finalizer, count }) => `${count} ${resource} held by finalizer "${finalizer}"`)
  const more = lines.length > maxLines ? ` and ${lines.length - maxLines} more kinds` : ''
  return `${total} objects are left: ${lines.slice(0, maxLines).join(', ')}${more}`
}
