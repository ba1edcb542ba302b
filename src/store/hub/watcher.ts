// One watch: what it wants to hear, and the bounded buffer between the hub and whoever reads it.
import { BatchQueue } from '../../async/index.ts'
import type { Revision } from '../../apimachinery/meta/index.ts'
import { StoreError } from '../store.ts'
import type { HubEvent, HubWatch, WatchScope } from './hub.ts'

/** Bytes of events that a watcher who is behind gets at a time. */
const joinedSize = 256 * 1024

export interface WatcherOptions {
  readonly scope: WatchScope
  readonly since: Revision
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Newest revision the hub has applied. */
  readonly applied: () => Revision
  /** Called once when the watch ends for whatever reason. */
  readonly onEnd: (watcher: Watcher) => void
}

/** Told of events with `offer`, which never waits; `flush` hands over what was gathered since the last one. */
export class Watcher implements HubWatch {
  readonly #options: WatcherOptions
  readonly #queue: BatchQueue<HubEvent>
  #gathered: HubEvent[] = []
  #gatheredBytes = 0
  /** Last revision of the batch the reader holds. */
  #held: Revision
  /** Batches were pushed that the reader has not asked beyond. */
  #behind = false
  #completed: Revision

  constructor(options: WatcherOptions) {
    this.#options = options
    this.#held = this.#completed = options.since
    const { signal } = options
    this.#queue = new BatchQueue({
      maxSize: options.maxBytes,
      joinedSize,
      overflow: () => new StoreError('Compacted', 'the watcher did not keep up'),
      onEnd: () => {
        signal.removeEventListener('abort', this.#abort)
        options.onEnd(this)
      },
    })
    if (signal.aborted) this.#queue.end()
    else signal.addEventListener('abort', this.#abort, { once: true })
  }

  readonly #abort = (): void => this.#queue.end()

  /** Takes the event if it concerns this watch. Returns true when it is the first since the last flush. */
  offer(event: HubEvent): boolean {
    const { since, scope } = this.#options
    if (event.revision <= since) return false
    if (scope.namespace !== undefined && event.entry.key.namespace !== scope.namespace) return false
    this.#gathered.push(event)
    this.#gatheredBytes += event.entry.bytes.length
    return this.#gathered.length === 1
  }

  flush(): void {
    const batch = this.#gathered
    if (batch.length === 0) return
    const bytes = this.#gatheredBytes
    this.#gathered = []
    this.#gatheredBytes = 0
    this.#behind = true
    this.#queue.push(batch, bytes)
  }

  /** Ends it after what is buffered. */
  end(): void {
    this.#queue.end()
  }

  fail(error: Error): void {
    this.#queue.fail(error)
  }

  get events(): AsyncIterable<readonly HubEvent[]> {
    const iterator = this.#queue[Symbol.asyncIterator]()
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          // Asking for more says that the last batch was dealt with.
          this.#completed = this.#held
          if (this.#queue.isEmpty) this.#behind = false
          const step = await iterator.next()
          if (step.done !== true) this.#held = step.value.at(-1)?.revision ?? this.#held
          return step
        },
        return: () => iterator.return?.() ?? Promise.resolve({ value: undefined, done: true }),
      }),
    }
  }

  progress(): Revision {
    if (this.#behind) return this.#completed
    return Math.max(this.#options.since, this.#options.applied()) as Revision
  }

  [Symbol.dispose](): void {
    this.#queue.end()
  }
}
