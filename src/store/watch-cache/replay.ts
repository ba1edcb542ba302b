// The first events of a watch that begins before the window: the final states of changed objects, read from the store.
import type { Revision } from '#apimachinery/meta/index.ts'
import type { StoreEvent } from '#store/store.ts'
import type { Entry, CacheEvent } from './watch-cache.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>

export interface ReplayInput {
  /** Final state per key of the changes after `since`; may go beyond `until`. */
  readonly changes: readonly StoreEvent[]
  readonly since: Revision
  /** `newer` holds every event after this revision. */
  readonly until: Revision
  readonly newer: readonly CacheEvent[]
  readonly asEvent: (change: Change) => CacheEvent | undefined
  /** Whether the base layer has this object, which every reader knows. */
  readonly isBase: (entry: Entry) => boolean
}

/**
 * The changes in (since, until] as final states, then `newer` as they happened. For a key that changed on both sides of
 * `until` the store knows only the later state; the earlier one is what the window's event replaced. If the window does
 * not know that either, the first event of an object that was created in (since, until] is ADDED, because the reader
 * does not know it.
 */
export function replayOf(input: ReplayInput): readonly CacheEvent[] {
  const { changes, since, until, newer, asEvent } = input
  const older: CacheEvent[] = []
  for (const change of changes) {
    if (change.type === 'progress') continue
    const revision = change.type === 'put' ? change.object.revision : change.revision
    if (revision > until) continue
    const event = asEvent(change)
    if (event) older.push(event)
  }
  for (const event of newer) {
    const replaced: Entry | undefined = event.type === 'ADDED' ? undefined : event.previous
    if (!replaced || replaced.revision <= since || replaced.revision > until) continue
    const { revision } = replaced
    older.push(
      replaced.createRevision > since
        ? { type: 'ADDED', entry: replaced, revision }
        : { type: 'MODIFIED', entry: replaced, previous: undefined, revision },
    )
  }
  older.sort((a, b) => a.revision - b.revision)
  return [...older, ...firstAsAdded(input)]
}

function firstAsAdded({ since, until, newer, isBase }: ReplayInput): CacheEvent[] {
  const told = new Set<string>()
  return newer.flatMap((event): CacheEvent[] => {
    const { entry, revision } = event
    const { key, createRevision } = entry
    const keyText = `${key.cluster}/${key.namespace}/${key.name}`
    if (told.has(keyText)) return [event]
    told.add(keyText)
    const isUnknown =
      event.type !== 'ADDED' && event.previous === undefined && createRevision > since && createRevision <= until
    if (!isUnknown || isBase(entry)) return [event]
    return event.type === 'MODIFIED' ? [{ type: 'ADDED', entry, revision }] : []
  })
}
