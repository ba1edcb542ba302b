// What of a logical cluster's content must be gone before the rest may be dropped: objects that members still run.
import type { GroupVersionResource } from '../../apimachinery/meta/index.ts'

/** One object that a syncer still holds. */
export interface HeldObject {
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly name: string
  readonly uid: string
  readonly deleting: boolean
  /** The syncers' finalizers, each of which names a member. */
  readonly finalizers: readonly string[]
}

export interface ContentLeft {
  readonly total: number
  /** Some of them, at most maxHeld. */
  readonly held: readonly HeldObject[]
  readonly counts: readonly { readonly resource: string; readonly finalizer: string; readonly count: number }[]
}

/** Objects that one visit deletes; the next takes the next ones. */
export const maxHeld = 500

const maxLines = 20

/** One sentence: what is left and who holds it. */
export function describeContent({ total, counts }: ContentLeft): string {
  const lines = counts.map(({ resource, finalizer, count }) => `${count} ${resource} held by finalizer "${finalizer}"`)
  const more = lines.length > maxLines ? ` and ${lines.length - maxLines} more kinds` : ''
  return `${total} objects are left: ${lines.slice(0, maxLines).join(', ')}${more}`
}
