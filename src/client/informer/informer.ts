// A local copy of one resource: list, then watch. A watch that ends is resumed at its last resourceVersion; if the
// server has dropped that version, the resource is listed again. Only its signal or its disposal ends the informer.
import { childSignal, isAborted, sleep, type ChildSignal } from '#async/index.ts'
import {
  groupResourceText,
  type DeepReadonly,
  type GroupVersionResource,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { KubeClient, ListOptions } from '#client/verbs/client.ts'
import { clusterOf, keyOf } from './key.ts'
import { CacheStore, type ChangeListener, type ObjectCache } from './store.ts'

export interface InformerOptions<T extends KubeObject> {
  readonly client: KubeClient
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** A part of the collection. Lists fail if the server does not say that it has applied the selector. */
  readonly shardSelector?: string
  /** The client's base path is `/clusters/*`: keys begin with the logical cluster. Default false. */
  readonly allClusters?: boolean
  /**
   * Whether the list omits objects that every logical cluster is created with and nobody has written. Default false.
   */
  readonly storedOnly?: boolean
  readonly metadataOnly?: boolean
  /**
   * Returns the part of an object to keep; may change its argument. Name, namespace, uid and resourceVersion must stay,
   * and with `allClusters` the annotation with the logical cluster. Called for each page of a list, so that a large
   * list is never whole in memory.
   */
  readonly transform?: (object: T) => T
  readonly log: Logger
  readonly signal: AbortSignal
  /** Delay after a failure: doubled each time, half of it random. Default 100 ms to 30 s. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number }
  /** timeoutSeconds of a watch; up to half of it is added at random. Default 240. */
  readonly watchSeconds?: number
  /** Returns a random number in [0, 1). Default Math.random. */
  readonly random?: () => number
}

export interface Informer<T extends KubeObject> extends AsyncDisposable {
  readonly store: ObjectCache<T>
  /**
   * Calls the listener for every object in the store, then for every change, in order and after the store has it.
   * Returns a function that ends the calls.
   */
  onChange(listener: ChangeListener<T>): () => void
  /** Resolves when the first list is in the store. Rejects with signal.reason, or if the informer ends before that. */
  synced(signal: AbortSignal): Promise<void>
  readonly hasSynced: boolean
  /** Lists again soon, at most once in ten seconds. For callers that know of an object that the last list lacked. */
  relist(): void
}

/** Starts an informer. It lives until its signal aborts or it is disposed of. */
export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  return new ListWatchInformer<T>(options)
}

/** Minimum milliseconds between two lists that `relist` causes. */
const relistMs = 10_000

/** A watch without events that ends sooner counts as a failure; otherwise a broken server would be asked in a loop. */
const shortWatchMs = 1000

class ListWatchInformer<T extends KubeObject> implements Informer<T> {
  readonly store: CacheStore<T>
  readonly #options: InformerOptions<T>
  readonly #log: Logger
  readonly #life: ReturnType<typeof childSignal>
  readonly #firstList = Promise.withResolvers<undefined>()
  readonly #done: Promise<void>
  readonly #random: () => number
  #synced = false
  #failures = 0
  #relistedAt = Number.NEGATIVE_INFINITY
  #mustList = false
  #watching: ChildSignal | undefined
  /** Start of the next watch; undefined if a list must come first. */
  #resourceVersion: string | undefined

  constructor(options: InformerOptions<T>) {
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#log = options.log.with({ resource: groupResourceText(options.gvr) })
    this.store = new CacheStore<T>((error, key) => this.#log.error('a listener of an informer failed', { key, error }))
    this.#life = childSignal(options.signal)
    // If nobody waits for the first list, its rejection must not count as unhandled.
    this.#firstList.promise.catch(() => undefined)
    this.#done = this.#run(this.#life.signal)
  }

  get hasSynced(): boolean {
    return this.#synced
  }

  relist(): void {
    const now = performance.now()
    if (now - this.#relistedAt < relistMs) return
    this.#relistedAt = now
    this.#mustList = true
    this.#watching?.abort(new DOMException('a list was asked for', 'AbortError'))
  }

  onChange(listener: ChangeListener<T>): () => void {
    return this.store.subscribe(listener)
  }

  async synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { promise, reject } = Promise.withResolvers<never>()
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([this.#firstList.promise, promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DOMException('the informer was closed', 'AbortError'))
    this.#life[Symbol.dispose]()
    await this.#done
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined || this.#mustList) await this.#list(signal)
        await this.#watch(signal)
      } catch (error) {
        if (isAborted(signal)) break
        await this.#pause(error, signal).catch(() => undefined)
      }
    }
    this.#firstList.reject(signal.reason)
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, gvr, storedOnly = false, transform } = this.#options
    this.#mustList = false
    const scope = this.#scope()
    const keep = transform && ((object: KubeObject): KubeObject => transform(object as T))
    const list = await client.list<T>(gvr, {
      ...scope,
      ...(storedOnly && { storedOnly }),
      ...(keep && { keep }),
      signal,
    })
    if (scope.shardSelector !== undefined && list.metadata.shardInfo === undefined)
      throw new Error('the server does not apply shardSelector')
    const objects = new Map<string, DeepReadonly<T>>()
    for (const item of list.items) {
      const key = this.#keyOf(item)
      if (key !== undefined) objects.set(key, item as DeepReadonly<T>)
    }
    this.#resourceVersion = list.metadata.resourceVersion
    this.store.replace(objects)
    if (!this.#synced) {
      this.#synced = true
      this.#firstList.resolve(undefined)
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, gvr, watchSeconds = 240, transform } = this.#options
    const timeoutSeconds = Math.ceil(watchSeconds * (1 + this.#random() / 2))
    const started = performance.now()
    let events = 0
    // After a network cut the connection never ends by itself; by this time the server should have ended the watch.
    using attempt = childSignal(signal)
    this.#watching = attempt
    const timer = setTimeout(
      () => attempt.abort(new Error('the server did not end the watch in time')),
      (timeoutSeconds + 15) * 1000,
    )
    try {
      const watch = client.watch<T>(gvr, {
        ...this.#scope(),
        timeoutSeconds,
        signal: attempt.signal,
        ...(this.#resourceVersion === undefined ? {} : { resourceVersion: this.#resourceVersion }),
      })
      for await (const { type, object } of watch) {
        events++
        this.#failures = 0
        const { resourceVersion } = object.metadata
        const key = type === 'BOOKMARK' ? undefined : this.#keyOf(object)
        if (key !== undefined) {
          if (type === 'DELETED') this.store.remove(key)
          else this.store.put(key, (transform ? transform(object) : object) as DeepReadonly<T>)
        }
        if (resourceVersion !== undefined) this.#resourceVersion = resourceVersion
      }
    } finally {
      clearTimeout(timer)
    }
    if (events === 0 && performance.now() - started < shortWatchMs && !signal.aborted) {
      throw new Error('the watch ended at once')
    }
    this.#failures = 0
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const { firstMs = 100, maxMs = 30_000 } = this.#options.backoff ?? {}
    const mustList = isStatusError(error) && (error.code === 410 || error.code === 400 || error.code === 404)
    if (mustList) this.#resourceVersion = undefined
    const wait = Math.min(maxMs, firstMs * 2 ** Math.min(this.#failures, 20))
    const ms = wait / 2 + (wait / 2) * this.#random()
    this.#failures++
    // 410 Expired is normal after a long pause: list again without delay.
    if (isStatusError(error) && error.code === 410 && this.#failures === 1) return
    const keys = { error, failures: this.#failures, waitMs: Math.round(ms) }
    if (this.#failures > 2) this.#log.warn('an informer cannot reach its server', keys)
    else this.#log.debug('an informer was interrupted', keys)
    await sleep(ms, signal)
  }

  #scope(): Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector' | 'shardSelector' | 'metadataOnly'> {
    const { namespace, labelSelector, fieldSelector, shardSelector, metadataOnly } = this.#options
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(shardSelector === undefined ? {} : { shardSelector }),
      ...(metadataOnly === undefined ? {} : { metadataOnly }),
    }
  }

  /** The key of an object; undefined, with a line in the log, for an object that does not say its logical cluster. */
  #keyOf(object: T): string | undefined {
    const { allClusters = false } = this.#options
    if (!allClusters || clusterOf(object) !== undefined) return keyOf(object, { allClusters })
    this.#log.error('an object over all logical clusters has no annotation with its logical cluster', {
      name: object.metadata.name,
    })
    return undefined
  }
}
