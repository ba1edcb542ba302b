// What a reader hears who knew all there was at a revision, and to whom the steps since then can no longer be told.
import type { Revision } from '../apimachinery/meta/index.ts'
import type { ObjectKey, StoreEvent } from './store.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>

/**
 * Of every key its last state; before it the deletion of the object that the reader knew, where another has its name
 * now: an object never turns into another. In order of revisions.
 */
export function lastStates(changes: Iterable<Change>, since: Revision): readonly Change[] {
  const last = new Map<string, Change>()
  const gone = new Map<string, Change>()
  for (const change of changes) {
    const place = placeOf(keyOf(change))
    const known = last.get(place)
    if (known === undefined || revisionOf(known) < revisionOf(change)) last.set(place, change)
    if (change.type === 'delete' && (change.previous?.createRevision ?? Infinity) <= since) gone.set(place, change)
  }
  for (const place of gone.keys())
    // What came after the object he knew and is gone as well, he never hears of.
    if (last.get(place)?.type === 'delete') last.delete(place)
  return [...gone.values(), ...last.values()].sort((a, b) => revisionOf(a) - revisionOf(b))
}

function keyOf(change: Change): ObjectKey {
  return change.type === 'put' ? change.object.key : change.key
}

function revisionOf(change: Change): Revision {
  return change.type === 'put' ? change.object.revision : change.revision
}

function placeOf({ cluster, resource, namespace, name }: ObjectKey): string {
  return `${cluster}\0${resource}\0${namespace}\0${name}`
}
