// Collapses the changes since a revision to each key's final state, for a reader that knew all objects at that
// revision.
import type { Revision } from '#apimachinery/meta/index.ts'
import type { ObjectKey, StoreEvent } from './store.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>

/**
 * The final state of every key, in order of revisions. If another object now has the name of one that the reader knew,
 * the deletion of the known one comes first: an object never turns into another.
 */
export function lastStates(changes: Iterable<Change>, since: Revision): readonly Change[] {
  const last = new Map<string, Change>()
  const deletions = new Map<string, Change>()
  for (const change of changes) {
    const keyText = keyTextOf(keyOf(change))
    const known = last.get(keyText)
    if (known === undefined || revisionOf(known) < revisionOf(change)) last.set(keyText, change)
    if (change.type === 'delete' && (change.previous?.createRevision ?? Infinity) <= since)
      deletions.set(keyText, change)
  }
  for (const keyText of deletions.keys())
    // The reader never learns of an object that was both created and deleted since.
    if (last.get(keyText)?.type === 'delete') last.delete(keyText)
  return [...deletions.values(), ...last.values()].sort((a, b) => revisionOf(a) - revisionOf(b))
}

function keyOf(change: Change): ObjectKey {
  return change.type === 'put' ? change.object.key : change.key
}

function revisionOf(change: Change): Revision {
  return change.type === 'put' ? change.object.revision : change.revision
}

function keyTextOf({ cluster, resource, namespace, name }: ObjectKey): string {
  return `${cluster}\0${resource}\0${namespace}\0${name}`
}
