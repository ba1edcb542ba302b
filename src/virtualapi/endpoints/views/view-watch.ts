// A watch through the view of an export, over all its consumers. If the rules of a consumer change, its objects appear
// or disappear: the watch sends ADDED or DELETED for those that it shows from now on, or no longer.
import { setImmediate as nextEventLoopPass } from 'node:timers/promises'
import type { ClusterId, GroupResource, Revision } from '#apimachinery/meta/index.ts'
import { StoreError } from '#store/index.ts'
import type { CacheEvent, CacheWatch, Entry, WatchCache, WatchReader, WatchScope } from '#store/watch-cache/index.ts'
import type { RequestView, ViewRule } from '#virtualapi/request/request-view.ts'
import { isShown } from './shown-entries.ts'

const nothing: readonly CacheEvent[] = []
/** Bytes of objects that may wait because consumers came or went; beyond them the client has to list again. */
const maxQueuedBytes = 8 << 20

export interface ViewWatchParts {
  readonly source: CacheWatch
  readonly view: RequestView
  readonly resource: GroupResource
  readonly scope: WatchScope
  readonly watchCache: Pick<WatchCache, 'listAll'>
  /** Consumers whose objects the client has not seen, because their rules changed after its last watch. */
  readonly unseen: Iterable<ClusterId>
}

/** The objects of a consumer as read when its rules changed. */
interface ReadState {
  /** The rule by which the client saw the consumer before. */
  readonly before: ViewRule | undefined
  readonly keys: ReadonlySet<string>
}

const keyText = ({ key }: Entry): string => `${key.namespace}/${key.name}`

export class ViewWatch implements CacheWatch, WatchReader {
  readonly #parts: ViewWatchParts
  readonly #life = new AbortController()
  readonly #unfollow: () => void
  /** The rules by which the client has seen each consumer. */
  readonly #seen = new Map<ClusterId, ViewRule | undefined>()
  readonly #changed = new Set<ClusterId>()
  /** Objects, as NAMESPACE/NAME, that the view shows from now on or no longer, by consumer. */
  readonly #changedObjects = new Map<ClusterId, Set<string>>()
  /** Events up to this revision are part of what was sent: for a consumer, or for one object of it. */
  readonly #floors = new Map<string, Revision>()
  /** What was read of consumers whose rules changed, as long as their floors. */
  readonly #states = new Map<ClusterId, ReadState>()
  /** Entries that are sent whatever the rules say now. */
  readonly #forced = new WeakSet<Entry>()
  #queue: CacheEvent[] = []
  #queuedBytes = 0
  #highestFloor = 0
  #reader: WatchReader | undefined
  #failure: StoreError | undefined
  #isBusy = false

  constructor(parts: ViewWatchParts) {
    this.#parts = parts
    for (const id of parts.view.consumers()) this.#seen.set(id, parts.view.ruleFor(id, parts.resource))
    for (const id of parts.unseen) {
      this.#seen.delete(id)
      this.#changed.add(id)
    }
    this.#unfollow = parts.view.follow((id, objects) => {
      if (objects === undefined) this.#changed.add(id)
      else this.#changedObjects.set(id, new Set([...(this.#changedObjects.get(id) ?? []), ...objects]))
      this.#update()
    })
    this.#update()
  }

  /** Whether the entry is shown. */
  shows(entry: Entry): boolean {
    // By the rule that the client has seen: an object may be deleted together with the binding that shows it.
    return this.#forced.has(entry) || isShown({ ruleFor: (id) => this.#seen.get(id) }, this.#parts.resource, entry)
  }

  read(reader: WatchReader): void {
    this.#reader = reader
    this.#parts.source.read(this)
    if (this.waits) reader.ready()
  }

  ready(): void {
    if (this.waits) this.#reader?.ready()
  }

  get waits(): boolean {
    if (this.#failure !== undefined) return true
    return !this.#isBusy && (this.#queue.length > 0 || this.#parts.source.waits)
  }

  take(maxBytes?: number): readonly CacheEvent[] | undefined {
    if (this.#failure !== undefined) throw this.#failure
    // Later events wait until the objects of the consumer are read, so that the client gets them in order.
    if (this.#isBusy) return nothing
    if (this.#queue.length > 0) {
      const events = this.#queue
      this.#queue = []
      this.#queuedBytes = 0
      if (this.#parts.source.waits) this.#reader?.ready()
      return events
    }
    const events = this.#parts.source.take(maxBytes)
    if (this.#floors.size === 0 || events === undefined) return events
    const later = events.filter((event) => this.#isNews(event))
    if (!this.#parts.source.waits && this.#parts.source.progress() >= this.#highestFloor) {
      this.#floors.clear()
      this.#states.clear()
    }
    return later
  }

  /** Whether the client does not know the event from what was read. */
  #isNews(event: CacheEvent): boolean {
    const { entry, revision, type } = event
    const { cluster } = entry.key
    const key = keyText(entry)
    const floor = this.#floors.get(`${cluster}/${key}`) ?? this.#floors.get(cluster) ?? 0
    if (revision > floor) return true
    // What was deleted before the state was read is not part of it, and the client still has it.
    const state = this.#states.get(cluster)
    if (type !== 'DELETED' || state === undefined || state.keys.has(key)) return false
    if (!isShown({ ruleFor: () => state.before }, this.#parts.resource, event.previous ?? entry)) return false
    this.#forced.add(entry)
    if (event.previous !== undefined) this.#forced.add(event.previous)
    return true
  }

  progress(): Revision {
    return this.#parts.source.progress()
  }

  [Symbol.dispose](): void {
    this.#life.abort(new DOMException('the watch has ended', 'AbortError'))
    this.#unfollow()
    this.#parts.source[Symbol.dispose]()
  }

  #update(): void {
    if (this.#isBusy || (this.#changed.size === 0 && this.#changedObjects.size === 0)) return
    this.#isBusy = true
    void this.#readChanged()
  }

  async #readChanged(): Promise<void> {
    // The listener is called while changes are applied.
    await nextEventLoopPass()
    const { signal } = this.#life
    try {
      for (const id of this.#changed) {
        this.#changed.delete(id)
        await this.#readConsumer(id, signal)
      }
      for (const [id, objects] of this.#changedObjects) {
        this.#changedObjects.delete(id)
        await this.#readObjects(id, objects, signal)
      }
    } catch (error) {
      if (!signal.aborted) this.#failure = new StoreError('Compacted', 'a consumer could not be read', { cause: error })
    }
    this.#isBusy = false
    if (!signal.aborted && this.waits) this.#reader?.ready()
  }

  async #readConsumer(id: ClusterId, signal: AbortSignal): Promise<void> {
    const { view, resource, scope, watchCache } = this.#parts
    const before = this.#seen.get(id)
    const now = view.ruleFor(id, resource)
    if (before === now) return
    const { entries, revision } = await watchCache.listAll(scope, [id], { signal })
    this.#seen.set(id, now)
    this.#setFloor(id, revision)
    this.#states.set(id, { before, keys: new Set(entries.map(keyText)) })
    for (const entry of entries) {
      const was = isShown({ ruleFor: () => before }, resource, entry)
      const is = isShown({ ruleFor: () => now }, resource, entry)
      if (was === is) continue
      if (!is) this.#forced.add(entry)
      this.#queue.push(is ? { type: 'ADDED', entry, revision } : { type: 'DELETED', entry, previous: entry, revision })
      this.#queuedBytes += entry.size
    }
    this.#requireRoom()
  }

  /** Sends what the rules say now of single objects. */
  async #readObjects(id: ClusterId, objects: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { view, resource, scope, watchCache } = this.#parts
    if (view.ruleFor(id, resource) === undefined) return
    const { entries, revision } = await watchCache.listAll(scope, [id], { signal })
    for (const entry of entries) {
      const { namespace, name } = entry.key
      if (!objects.has(`${namespace}/${name}`)) continue
      this.#setFloor(`${id}/${namespace}/${name}`, revision)
      const is = isShown(view, resource, entry)
      if (!is) this.#forced.add(entry)
      this.#queue.push(is ? { type: 'ADDED', entry, revision } : { type: 'DELETED', entry, previous: entry, revision })
      this.#queuedBytes += entry.size
    }
    this.#requireRoom()
  }

  #setFloor(of: string, revision: Revision): void {
    this.#floors.set(of, revision)
    this.#highestFloor = Math.max(this.#highestFloor, revision)
  }

  #requireRoom(): void {
    if (this.#queuedBytes > maxQueuedBytes)
      this.#failure = new StoreError('Compacted', 'the objects of new consumers are too many for this watch')
  }
}
