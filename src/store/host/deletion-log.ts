// A log of deleted objects: the host reports a deletion only in its watch, and only for little more than a minute. The
// log keeps the newest deletions with the objects. For older deletions it keeps only the revision of the last deletion
// of each resource in each logical cluster.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import type { StoreEvent } from '#store/store.ts'

export type Deletion = Extract<StoreEvent, { type: 'delete' }>

/** The deletions up to a revision, for a later process. */
export interface DeletionSummary {
  /** The summary includes the deletions up to this revision. */
  readonly revision: number
  /** Nothing is known about deletions up to this revision. */
  readonly floor: number
  /** Revision of the last deletion by `CLUSTER RESOURCE`. */
  readonly last: Readonly<Record<string, number>>
}

interface Scope {
  readonly cluster: ClusterId
  readonly resource: string
}

const maxDeletions = 50_000
const maxBytes = 32 * 1024 * 1024
/**
 * Number of scopes (a resource in a logical cluster) whose last deletion is kept. A summary of this many scopes is
 * about 120 KB.
 */
const maxLast = 2048

/** A bounded log of deletions: the oldest deletions are dropped first. */
export class DeletionLog {
  #deletions: Deletion[] = []
  #bytes = 0
  /** All deletions after this revision are in `#deletions`. */
  #floor = 0
  /** The last deletion of each scope up to `#floor`, in the order of revisions. */
  readonly #last = new Map<string, number>()
  /** Nothing at all is known about deletions up to this revision. */
  #lastFloor = 0

  /** Starts the log at a revision: nothing is known about deletions up to it. */
  start(revision: Revision): void {
    this.#floor = this.#lastFloor = revision
    this.#deletions = []
    this.#bytes = 0
    this.#last.clear()
  }

  /** Adds the deletions before the log began at `startedAt`: a summary, and all deletions since the summary. */
  extend(summary: DeletionSummary, since: readonly Deletion[], startedAt: Revision): void {
    // If the log has dropped deletions since it started, older ones would leave a gap.
    if (this.#floor !== startedAt || this.#lastFloor !== startedAt) return
    this.#deletions = [...since, ...this.#deletions]
    for (const deletion of since) this.#bytes += sizeOf(deletion)
    this.#floor = summary.revision
    this.#lastFloor = summary.floor
    for (const [scope, revision] of Object.entries(summary.last)) this.#last.set(scope, revision)
  }

  add(deletion: Deletion): void {
    this.#deletions.push(deletion)
    this.#bytes += sizeOf(deletion)
    if (this.#deletions.length <= maxDeletions && this.#bytes <= maxBytes) return
    this.shorten(this.#deletions[Math.ceil(this.#deletions.length / 2) - 1]?.revision ?? (this.#floor as Revision))
  }

  /** Drops the deletions up to this revision; keeps only the revision of the last one of each scope. */
  shorten(revision: Revision): void {
    this.#floor = revision
    // Several deletions may share one revision: drop them together, or the rest would be incomplete.
    for (const deletion of this.#deletions) if (deletion.revision <= revision) this.#note(deletion)
    this.#deletions = this.#deletions.filter((deletion) => deletion.revision > revision)
    this.#bytes = this.#deletions.reduce((sum, deletion) => sum + sizeOf(deletion), 0)
  }

  /** Deletions after `since`, oldest first; undefined if some of them are no longer known. */
  after(scope: Scope, since: Revision): readonly Deletion[] | undefined {
    if (since < this.#floor && (since < this.#lastFloor || (this.#last.get(scopeOf(scope)) ?? 0) > since))
      return undefined
    return this.#deletions.filter(
      ({ key, revision }) => revision > since && key.cluster === scope.cluster && key.resource === scope.resource,
    )
  }

  /** The summary for a later process; everything up to `revision` must have been added. */
  summary(revision: Revision): DeletionSummary {
    const last = new Map(this.#last)
    for (const deletion of this.#deletions) moveToEnd(last, scopeOf(deletion.key), deletion.revision)
    return { revision, floor: Math.max(this.#lastFloor, cut(last)), last: Object.fromEntries(last) }
  }

  #note({ key, revision }: Deletion): void {
    moveToEnd(this.#last, scopeOf(key), revision)
    this.#lastFloor = Math.max(this.#lastFloor, cut(this.#last))
  }
}

function scopeOf({ cluster, resource }: Scope): string {
  return `${cluster} ${resource}`
}

function moveToEnd(last: Map<string, number>, scope: string, revision: number): void {
  const latest = Math.max(revision, last.get(scope) ?? 0)
  last.delete(scope)
  last.set(scope, latest)
}

/** Drops the oldest scopes above the limit; returns the revision up to which nothing is known afterwards. */
function cut(last: Map<string, number>): number {
  let floor = 0
  for (const [scope, revision] of last) {
    if (last.size <= maxLast) break
    last.delete(scope)
    floor = Math.max(floor, revision)
  }
  return floor
}

function sizeOf({ previous }: Deletion): number {
  return 200 + (previous?.value.length ?? 0)
}

interface DeletionWaiter {
  /**
   * Revision of the Record that the caller deletes. A deletion at or before this revision is the deletion of an earlier
   * Record with the same name.
   */
  readonly ifRevision: Revision
  readonly resolve: (revision: Revision) => void
}

/** Callers that wait for the revision of a deletion, which the host reports on its watch only. */
export class DeletionWaiters {
  readonly #byRecord = new Map<string, DeletionWaiter[]>()

  /** Returns a function that stops the waiting. */
  add(record: string, waiter: DeletionWaiter): () => void {
    this.#byRecord.set(record, [...(this.#byRecord.get(record) ?? []), waiter])
    return () => this.#keep(record, (other) => other !== waiter)
  }

  has(record: string, resolve: DeletionWaiter['resolve']): boolean {
    return this.#byRecord.get(record)?.some((waiter) => waiter.resolve === resolve) ?? false
  }

  /** Removes and returns the waiters that a deletion of this Record at this revision concerns. */
  take(record: string, revision: Revision): readonly DeletionWaiter[] {
    const taken = (this.#byRecord.get(record) ?? []).filter(({ ifRevision }) => ifRevision < revision)
    if (taken.length > 0) this.#keep(record, (waiter) => !taken.includes(waiter))
    return taken
  }

  /** Names of the Records whose deletion a caller waits for. */
  records(): readonly string[] {
    return [...this.#byRecord.keys()]
  }

  #keep(record: string, wanted: (waiter: DeletionWaiter) => boolean): void {
    const left = this.#byRecord.get(record)?.filter(wanted) ?? []
    if (left.length === 0) this.#byRecord.delete(record)
    else this.#byRecord.set(record, left)
  }
}

/**
 * Name of the Record that holds the summary of deletions for a later process, so that watches from before a restart can
 * resume. The host itself still reports the deletions between the last save and the start. No object's Record has this
 * name, because their names are hashes.
 */
const savedName = 'deletions'
/**
 * Timeout of the watch that reads past deletions, in seconds. The host sends a bookmark two seconds before it ends a
 * watch.
 */
const replaySeconds = 4

/** Access to the Record of saved deletions. `namespace` is the bucket that holds it. */
interface SavedDeletionsOptions {
  readonly client: KubeClient
  readonly namespace: string
}

/** True for the Record of saved deletions, which holds no object. */
export function isSavedDeletions({ metadata }: StorageRecord): boolean {
  return metadata.name === savedName
}

/** The saved summary; undefined if it was edited by hand. */
export function readSavedDeletions({ data }: StorageRecord): DeletionSummary | undefined {
  try {
    const { revision, floor, last } = parseJsonText(data) as Partial<DeletionSummary>
    if (!(Number(revision) >= Number(floor)) || typeof last !== 'object') return undefined
    return { revision: Number(revision), floor: Number(floor), last }
  } catch {
    return undefined
  }
}

/** Replaces the saved summary. A late call may save an older summary, which is still correct. */
export async function saveDeletions(
  summary: DeletionSummary,
  { client, namespace }: SavedDeletionsOptions,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const data = JSON.stringify(summary)
  const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const place = { namespace, name: savedName }
  try {
    await client.patch(recordsGvr, place, 'merge', { data }, { signal: ends })
  } catch (error) {
    if (!isStatusError(error, 'NotFound')) throw error
    const record: StorageRecord = {
      apiVersion: 'storage.kcp.dev/v1',
      kind: 'Record',
      metadata: place,
      cluster: '',
      resource: '',
      name: savedName,
      data,
    }
    await client.create(recordsGvr, record, { signal: ends })
  }
}

/**
 * The Records deleted in (since, until], in their last state; undefined if the host does not know all of them any more.
 */
export async function deletedRecords(
  client: KubeClient,
  { since, until, signal }: { readonly since: number; readonly until: Revision; readonly signal: AbortSignal },
): Promise<readonly StorageRecord[] | undefined> {
  const deleted: StorageRecord[] = []
  if (since >= until) return deleted
  const options = { resourceVersion: String(since), timeoutSeconds: replaySeconds, signal }
  for await (const { type, object } of client.watch<StorageRecord>(recordsGvr, options)) {
    const revision = Number(object.metadata.resourceVersion)
    if (type === 'DELETED' && revision <= until) deleted.push(object)
    if (revision >= until) return deleted
  }
  return undefined
}
