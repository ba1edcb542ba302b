// ClusterObjects on the worker thread. The main thread answers its reads from memory while the worker blocks, so that
// the synchronous code of the registry works on both threads.
import { LRUCache } from 'lru-cache'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { ObjectKey, Waiting } from '#store/index.ts'
import {
  StoredEntry,
  type ClusterObjects,
  type Entry,
  type CacheWatch,
  type WatchScope,
} from '#store/watch-cache/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { owned, type Read, type ReadAnswers, type ToldEntry, type Write, type WriteResult } from './protocol.ts'

/** Sends reads and writes to the main thread. */
export interface Link {
  read(cluster: ClusterId, read: Read): unknown
  /** Rejects with StoreError. */
  write(what: Write, transfer: readonly ArrayBuffer[]): Promise<Extract<WriteResult, { is: 'written' }>>
}

/** A cache of objects, because definitions and roles are read again and again. */
export type KnownEntries = LRUCache<string, Entry>

const maxKnownBytes = 16 * 1024 * 1024
const maxKnown = 10_000

export function createKnownEntries(): KnownEntries {
  return new LRUCache({ max: maxKnown, maxSize: maxKnownBytes, sizeCalculation: ({ bytes }) => bytes.length + 100 })
}

export class RemoteObjects implements ClusterObjects {
  readonly cluster: ClusterId
  readonly #link: Link
  readonly #known: KnownEntries

  constructor(cluster: ClusterId, { link, known }: { link: Link; known: KnownEntries }) {
    this.cluster = cluster
    this.#link = link
    this.#known = known
  }

  revision(): Revision {
    return this.#read({ do: 'revision' })
  }

  changes(resource: string): number {
    return this.#read({ do: 'changes', resource })
  }

  changedNames(resource: string, since: number): ReturnType<ClusterObjects['changedNames']> {
    return this.#read({ do: 'changedNames', resource, since })
  }

  get(resource: string, namespace: string, name: string): Entry | undefined {
    const known = this.#known.get(this.#keyText({ resource, namespace, name }))
    const told = this.#read({ do: 'get', resource, namespace, name, known: known?.revision ?? -1 })
    return told && this.#entry(resource, told, known)
  }

  list({ resource, namespace }: WatchScope): readonly Entry[] {
    const prefix = `${this.cluster}/${resource}/${namespace === undefined ? '' : `${namespace}/`}`
    // These entries are held until the answer is read: an entry that the answer adds to the cache may evict an entry
    // whose bytes the answer leaves out.
    const held = new Map<string, Entry>()
    for (const [key, entry] of this.#known.entries()) if (key.startsWith(prefix)) held.set(key, entry)
    const known = new Map([...held].map(([key, { revision }]) => [key, revision]))
    const scope = { resource, ...(namespace === undefined ? {} : { namespace }) }
    const all = this.#read({ do: 'list', ...scope, known })
    return all.map((told) => this.#entry(resource, told, held.get(this.#keyText({ resource, ...told }))))
  }

  async create(key: Omit<ObjectKey, 'cluster'>, value: Uint8Array, { signal }: Waiting): Promise<Entry> {
    return this.#put(key, value, signal, (own) => ({ do: 'create', key, value: own }))
  }

  async update(
    key: Omit<ObjectKey, 'cluster'>,
    value: Uint8Array,
    { signal, ifRevision }: Waiting & { ifRevision: Revision },
  ): Promise<Entry> {
    return this.#put(key, value, signal, (own) => ({ do: 'update', key, value: own, ifRevision }))
  }

  async delete(
    key: Omit<ObjectKey, 'cluster'>,
    { signal, ifRevision }: Waiting & { ifRevision: Revision },
  ): Promise<Entry> {
    signal.throwIfAborted()
    const { revision, createRevision, bytes } = await this.#link.write({ do: 'delete', key, ifRevision }, [])
    if (bytes === undefined) throw new Error('a deletion without the last state')
    return this.#stored(key, { revision, createRevision, base: false }, bytes)
  }

  listAt(): never {
    throw notOnWorker()
  }
  count(): never {
    throw notOnWorker()
  }
  dependents(): never {
    throw notOnWorker()
  }
  blockers(): never {
    throw notOnWorker()
  }
  written(): never {
    throw notOnWorker()
  }
  hidden(): never {
    throw notOnWorker()
  }
  unwritten(): never {
    throw notOnWorker()
  }
  resources(): never {
    throw notOnWorker()
  }
  mark(): never {
    throw notOnWorker()
  }
  setMark(): Promise<Entry> {
    return Promise.reject(notOnWorker())
  }
  replaceMark(): Promise<Entry> {
    return Promise.reject(notOnWorker())
  }
  removeMark(): Promise<void> {
    return Promise.reject(notOnWorker())
  }
  freeze(): Promise<Entry> {
    return Promise.reject(notOnWorker())
  }
  expireWatches(): never {
    throw notOnWorker()
  }
  watch(): Promise<CacheWatch> {
    return Promise.reject(notOnWorker())
  }

  async #put(
    key: Omit<ObjectKey, 'cluster'>,
    value: Uint8Array,
    signal: AbortSignal,
    write: (own: Uint8Array) => Write,
  ): Promise<Entry> {
    signal.throwIfAborted()
    const own = owned(value)
    const { revision, createRevision } = await this.#link.write(write(own), [own.buffer])
    // Stamps the revision as the watch cache does, so the bytes are the same.
    return this.#stored(key, { revision, createRevision, base: false }, stampRevision(value, revision))
  }

  /** The entry that the main thread sent, or the known entry if the main thread left out its bytes. */
  #entry(resource: string, { namespace, name, bytes, ...facts }: ToldEntry, known: Entry | undefined): Entry {
    const key = { resource, namespace, name }
    const text = this.#keyText(key)
    if (bytes === undefined && known?.revision === facts.revision) return known
    if (bytes === undefined) throw new Error(`the bytes of ${text} were not told`)
    const entry = this.#stored(key, facts, bytes)
    this.#known.set(text, entry)
    return entry
  }

  #stored(
    key: Omit<ObjectKey, 'cluster'>,
    facts: Pick<Entry, 'revision' | 'createRevision' | 'base'>,
    bytes: Uint8Array,
  ): Entry {
    return new StoredEntry({ key: { cluster: this.cluster, ...key }, ...facts, bytes }, readFacts)
  }

  #read<Do extends Read['do']>(read: Extract<Read, { do: Do }>): ReadAnswers[Do] {
    return this.#link.read(this.cluster, read) as ReadAnswers[Do]
  }

  #keyText(key: Omit<ObjectKey, 'cluster'>): string {
    return keyText({ cluster: this.cluster, ...key })
  }
}

/** The key of an object in messages between the threads. */
export function keyText({ cluster, resource, namespace, name }: ObjectKey): string {
  return `${cluster}/${resource}/${namespace}/${name}`
}

function notOnWorker(): Error {
  return new Error('this is asked of the main thread only')
}
