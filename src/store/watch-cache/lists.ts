// Lists of entries in key order: merges the base layer with stored objects, and restores past states.
import type { Entry, CacheEvent, WatchScope } from './watch-cache.ts'

/** Compares by namespace, then name, in UTF-16 code units. */
export function compareEntries({ key: a }: Entry, { key: b }: Entry): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1
  return a.name === b.name ? 0 : a.name < b.name ? -1 : 1
}

/** Merges two sorted lists without common keys. */
export function mergeByKey(a: readonly Entry[], b: readonly Entry[]): readonly Entry[] {
  if (a.length === 0) return b
  if (b.length === 0) return a
  // A few objects of the base layer among thousands: the others are copied, not compared.
  if (b.length * 16 < a.length) return withInserted(a, b)
  if (a.length * 16 < b.length) return withInserted(b, a)
  const merged: Entry[] = []
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    const [left, right] = [a[i] as Entry, b[j] as Entry]
    if (compareEntries(left, right) < 0) {
      merged.push(left)
      i++
    } else {
      merged.push(right)
      j++
    }
  }
  for (; i < a.length; i++) merged.push(a[i] as Entry)
  for (; j < b.length; j++) merged.push(b[j] as Entry)
  return merged
}

function withInserted(many: readonly Entry[], few: readonly Entry[]): readonly Entry[] {
  const pieces: (readonly Entry[])[] = []
  let from = 0
  for (const entry of few) {
    const at = indexOf(many, entry, from)
    pieces.push(many.slice(from, at), [entry])
    from = at
  }
  pieces.push(many.slice(from))
  return pieces.flat()
}

/**
 * The list as it was before these events, which must be all events since. Costs a copy of the list, and n log n for
 * the events alone: a client that pages through a large list while it changes asks for this once for each page.
 */
export function rewind(current: readonly Entry[], events: readonly CacheEvent[], scope: WatchScope): readonly Entry[] {
  const changed = changedSince(events, scope)
  if (changed.length === 0) return current
  const before: Entry[] = []
  let from = 0
  for (const { entry, previous } of changed) {
    const at = indexOf(current, entry, from)
    for (let i = from; i < at; i++) before.push(current[i] as Entry)
    if (previous !== undefined) before.push(previous)
    const found = current[at]
    from = found !== undefined && compareEntries(found, entry) === 0 ? at + 1 : at
  }
  for (let i = from; i < current.length; i++) before.push(current[i] as Entry)
  return before
}

interface Changed {
  readonly entry: Entry
  /** The object before the first of the events; undefined if there was none. */
  readonly previous: Entry | undefined
}

/** The objects of the scope that the events concern, in key order, each once. */
function changedSince(events: readonly CacheEvent[], { namespace }: WatchScope): readonly Changed[] {
  const changed = new Map<string, Changed>()
  for (const event of events) {
    const { entry } = event
    if (namespace !== undefined && entry.key.namespace !== namespace) continue
    const place = `${entry.key.namespace}/${entry.key.name}`
    // The first event of an object tells what was there before all of them.
    if (changed.has(place)) continue
    changed.set(place, { entry, previous: event.type === 'ADDED' ? undefined : event.previous })
  }
  return [...changed.values()].sort((a, b) => compareEntries(a.entry, b.entry))
}

/** Index of the first entry at or after the key of `wanted`, searched from an index. */
function indexOf(entries: readonly Entry[], wanted: Entry, from: number): number {
  let [low, high] = [from, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareEntries(entries[middle] as Entry, wanted) < 0) low = middle + 1
    else high = middle
  }
  return low
}
