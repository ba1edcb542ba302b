// The newest events of a store in memory, and their delivery to every watcher: shared by all backends.
import type { Revision } from '#apimachinery/meta/index.ts'
import { BatchQueue } from '#async/index.ts'
import { type ObjectKey, StoreError, type StoreEvent } from './store.ts'

export type Change = Exclude<StoreEvent, { type: 'progress' }>

/**
 * Number of events kept in memory for watches that begin a little in the past. For older events the SQLite store reads
 * its file, and the host store rejects Compacted.
 */
const keptEvents = 1024
const keptBytes = 16 * 1024 * 1024
/** Size charged for a progress event, bytes. */
const progressBytes = 100
/** Bytes of events that may wait for one slow watcher. A store has few watchers, such as the watch cache. */
const watcherBytes = 64 * 1024 * 1024

interface LiveEvents extends AsyncIterable<readonly StoreEvent[]> {
  end(): void
}

interface LogWatcher {
  readonly queue: BatchQueue<StoreEvent>
  readonly since: number
}

/**
 * `add` collects the events of a batch; `flush` delivers them and then runs the callbacks that respond to the writers.
 */
export class EventLog {
  readonly #watchers = new Set<LogWatcher>()
  #kept: Change[] = []
  #keptBytes = 0
  /** Events after this revision are all in `#kept`. */
  #floor = 0
  #revision = 0
  #batch: Change[] = []
  #batchBytes = 0
  #afterFlush: (() => void)[] = []
  #failure: StoreError | undefined

  start(revision: Revision): void {
    this.#floor = revision
    this.#revision = revision
  }

  /** Newest revision delivered. */
  get revision(): Revision {
    return this.#revision as Revision
  }

  /** True when every event after `since` is still in memory or yet to come. */
  knows(since: Revision): boolean {
    return since >= this.#floor
  }

  add(event: Change): void {
    this.#batch.push(event)
    this.#batchBytes += sizeOf(event)
  }

  /** Runs `run` after the events added before it are delivered. */
  afterFlush(run: () => void): void {
    this.#afterFlush.push(run)
  }

  flush(): void {
    const batch = this.#batch
    const last = batch.at(-1)
    if (last) {
      this.#revision = revisionOf(last)
      for (const { queue, since } of this.#watchers) {
        // A watch may begin at a future revision: it skips the events up to that revision.
        queue.push(revisionOf(batch[0] ?? last) > since ? batch : after(batch, since), this.#batchBytes)
      }
      this.#keep(batch)
      this.#batch = []
      this.#batchBytes = 0
    }
    const runs = this.#afterFlush
    this.#afterFlush = []
    for (const run of runs) run()
  }

  /** Reports to every watcher that all events up to this revision were delivered. */
  progress(revision: Revision): void {
    this.flush()
    if (revision <= this.#revision) return
    this.#revision = revision
    for (const { queue, since } of this.#watchers) {
      if (revision > since) queue.push([{ type: 'progress', revision }], progressBytes)
    }
  }

  /** Events after `since`, which must be in memory (see `knows`). Ends with the signal. */
  watch(since: Revision, signal: AbortSignal): LiveEvents {
    const end = (): void => queue.end()
    const queue = new BatchQueue<StoreEvent>({
      maxSize: watcherBytes,
      overflow: () => new StoreError('Compacted', 'the watcher did not keep up'),
      onEnd: () => {
        this.#watchers.delete(watcher)
        signal.removeEventListener('abort', end)
      },
    })
    const watcher: LogWatcher = { queue, since }
    this.#watchers.add(watcher)
    signal.addEventListener('abort', end, { once: true })
    queue.push(after(this.#kept, since), 0)
    if (this.#failure) queue.fail(this.#failure)
    return { [Symbol.asyncIterator]: () => queue[Symbol.asyncIterator](), end }
  }

  /** Ends the stream of events: every watch rejects with the error, including watches that begin later. */
  fail(error: StoreError): void {
    this.#failure ??= error
    for (const { queue } of [...this.#watchers]) queue.fail(error)
  }

  #keep(batch: readonly Change[]): void {
    // Pushes one event at a time: `push(...batch)` would overflow the stack with a hundred thousand events, which the
    // deletion of many logical clusters causes.
    for (const event of batch) this.#kept.push(event)
    this.#keptBytes += this.#batchBytes
    if (this.#kept.length <= 2 * keptEvents && this.#keptBytes <= keptBytes) return
    let drop = Math.max(0, this.#kept.length - keptEvents)
    let dropped = 0
    for (let i = 0; i < this.#kept.length; i++) {
      if (i >= drop && this.#keptBytes - dropped <= keptBytes / 2) break
      dropped += sizeOf(this.#kept[i] as Change)
      drop = Math.max(drop, i + 1)
    }
    const last = this.#kept.splice(0, drop).at(-1)
    this.#keptBytes -= dropped
    if (last) this.#floor = revisionOf(last)
  }
}

export function sizeOf(event: Change): number {
  return event.type === 'put' ? event.object.value.length : (event.previous?.value.length ?? 0)
}

function after(events: readonly Change[], since: number): readonly Change[] {
  const at = events.findIndex((event) => revisionOf(event) > since)
  return at < 0 ? [] : at === 0 ? events.slice() : events.slice(at)
}

/**
 * The `watch` of a store: what the log has, after what `history` reads of the changes in (since, until].
 */
export async function* watchLog(
  log: EventLog,
  { since, signal }: { readonly since: Revision; readonly signal: AbortSignal },
  history: (until: Revision) => Promise<readonly StoreEvent[]>,
): AsyncIterable<readonly StoreEvent[]> {
  if (signal.aborted) return
  // The log may move on while older changes are read; it buffers the events after `from` meanwhile.
  const from = log.knows(since) ? since : log.revision
  const live = log.watch(from, signal)
  try {
    if (from !== since) yield [...(await history(from)), { type: 'progress', revision: from }]
    yield* live
  } finally {
    live.end()
  }
}

/**
 * The final state of every key, in order of revisions. If an object that existed at `since` was deleted and its key is
 * used again, the deletion comes before the new object: a reader never sees one object turn into another.
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
    // This is either the same deletion or the deletion of an object created after `since`, which the reader never saw.
    if (last.get(keyText)?.type === 'delete') last.delete(keyText)
  return [...deletions.values(), ...last.values()].sort((a, b) => revisionOf(a) - revisionOf(b))
}

export function keyOf(change: Change): ObjectKey {
  return change.type === 'put' ? change.object.key : change.key
}

export function revisionOf(change: Change): Revision {
  return change.type === 'put' ? change.object.revision : change.revision
}

export function keyTextOf({ cluster, resource, namespace, name }: ObjectKey): string {
  return `${cluster}\0${resource}\0${namespace}\0${name}`
}
