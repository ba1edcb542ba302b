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

/** The list as it was before these events, which must be all events since. */
export function rewind(current: readonly Entry[], events: readonly CacheEvent[], scope: WatchScope): readonly Entry[] {
  if (events.length === 0) return current
  const byKey = new Map(current.map((entry) => [keyOf(entry), entry]))
  for (const event of events.toReversed()) {
    if (scope.namespace !== undefined && event.entry.key.namespace !== scope.namespace) continue
    const previous = event.type === 'ADDED' ? undefined : event.previous
    if (previous) byKey.set(keyOf(previous), previous)
    else byKey.delete(keyOf(event.entry))
  }
  return [...byKey.values()].sort(compareEntries)
}

function keyOf({ key }: Entry): string {
  return `${key.namespace}/${key.name}`
}
