// Documents of aggregated API servers, for discovery. A document is fetched when a request needs it, and its digest is
// kept for a while. A server that does not respond delays one request per while, not each request.
import { LRUCache } from 'lru-cache'
import { parseJsonInTurns } from '#apimachinery/json/index.ts'
import { isJsonObject, type ClusterId, type JsonObject } from '#apimachinery/meta/index.ts'
import { abortable } from '#async/index.ts'
import type { AggregatedServers } from './aggregated-servers.ts'
import type { RemoteApiService, RemoteServer } from './remote-api-service.ts'

const keptMs = 30_000
const failureKeptMs = 5000
const timeoutMs = 5000
/**
 * The largest documents of real servers have some 150,000 values and 60 levels; their size is bounded by
 * AggregatedServers.
 */
const bounds = { maxBytes: 4 * 1024 * 1024, maxValues: 200_000, maxDepth: 200 }
/**
 * The most bytes of kept digests, of all logical clusters and of one. A digest above the second bound is dropped, as if
 * the server had not responded.
 */
const [mostBytes, mostBytesOfCluster] = [64 * 1024 * 1024, 12 * 1024 * 1024]
/** The most servers of one logical cluster that are called at once. */
const concurrency = 8

/** The used part of a document, in the form in which it is kept. */
export interface Digest<T> {
  readonly value: T
  /** The approximate size of the value in responses. */
  readonly bytes: number
}

export type Turn = () => Promise<void> | undefined

export interface WantedDocument<T> {
  /** The name of the document and of the way to digest it: part of the cache key. */
  readonly name: string
  readonly path: string
  readonly accept: string
  /** The digest of the document; undefined if the document is of no use. Awaits `turn` between pieces of work. */
  readonly digest: (document: JsonObject, turn: Turn) => Promise<Digest<T> | undefined> | Digest<T> | undefined
}

interface Kept {
  readonly server: RemoteServer
  readonly until: number
  readonly digest: Promise<Digest<unknown> | undefined>
}

export interface RemoteDocumentsOptions {
  readonly servers: AggregatedServers
  /** Awaited while a document is read, so that other logical clusters are served. */
  readonly turnOf: (cluster: ClusterId) => Promise<void> | undefined
  readonly signal: AbortSignal
}

/** Fetches documents and keeps their digests, within bounds for each logical cluster. */
export class RemoteDocuments {
  readonly #servers: AggregatedServers
  readonly #turnOf: RemoteDocumentsOptions['turnOf']
  readonly #life: AbortSignal
  readonly #bytes = new Map<ClusterId, number>()
  readonly #kept = new LRUCache<string, Kept>({
    max: 5000,
    maxSize: mostBytes,
    dispose: (_kept, key) => this.#uncharge(key),
  })
  /** The bytes of kept digests, by key of the cache. */
  readonly #charged = new Map<string, { readonly cluster: ClusterId; readonly bytes: number }>()

  constructor({ servers, turnOf, signal }: RemoteDocumentsOptions) {
    this.#servers = servers
    this.#turnOf = turnOf
    this.#life = signal
  }

  /**
   * The digest of a document; undefined if the server did not respond with a usable document. Rejects only with
   * signal.reason.
   */
  async get<T>(
    cluster: ClusterId,
    one: RemoteApiService,
    wanted: WantedDocument<T>,
    signal: AbortSignal,
  ): Promise<Digest<T> | undefined> {
    const key = `${cluster}/${one.name}/${wanted.name}`
    const known = this.#kept.get(key)
    // The key contains the name of the wanted document, so the kept digest has type T.
    if (known !== undefined && known.server === one.remote && performance.now() < known.until)
      return (await abortable(known.digest, signal)) as Digest<T> | undefined
    // The fetch does not end with the signal of this request, because other requests wait for the same document.
    const digest: Promise<Digest<T> | undefined> = this.#fetch(cluster, one, wanted).then((found) =>
      this.#keep(cluster, key, { one, digest, found }),
    )
    this.#kept.set(key, { server: one.remote, until: performance.now() + keptMs, digest }, { size: 1 })
    return await abortable(digest, signal)
  }

  /** The digests of a document of several servers, in the order of the servers. A few are fetched at once. */
  async getAll<T>(
    cluster: ClusterId,
    servers: readonly RemoteApiService[],
    wanted: (one: RemoteApiService) => WantedDocument<T>,
    signal: AbortSignal,
  ): Promise<(Digest<T> | undefined)[]> {
    const found = new Array<Digest<T> | undefined>(servers.length)
    const rest = servers.entries()
    const worker = async (): Promise<void> => {
      for (const [i, one] of rest) found[i] = await this.get(cluster, one, wanted(one), signal)
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
    return found
  }

  #keep<T>(
    cluster: ClusterId,
    key: string,
    { one, digest, found }: { one: RemoteApiService; digest: Promise<unknown>; found: Digest<T> | undefined },
  ): Digest<T> | undefined {
    // Another fetch may have begun after the APIService was changed.
    const isCurrent = this.#kept.peek(key)?.digest === digest
    const fits = found !== undefined && (this.#bytes.get(cluster) ?? 0) + found.bytes <= mostBytesOfCluster
    const kept = fits ? found : undefined
    if (!isCurrent) return kept
    const until = performance.now() + (kept === undefined ? failureKeptMs : keptMs)
    const bytes = kept?.bytes ?? 0
    this.#kept.set(key, { server: one.remote, until, digest: Promise.resolve(kept) }, { size: 1 + bytes })
    this.#charged.set(key, { cluster, bytes })
    this.#bytes.set(cluster, (this.#bytes.get(cluster) ?? 0) + bytes)
    return kept
  }

  #uncharge(key: string): void {
    const charged = this.#charged.get(key)
    if (charged === undefined) return
    this.#charged.delete(key)
    const left = (this.#bytes.get(charged.cluster) ?? 0) - charged.bytes
    if (left > 0) this.#bytes.set(charged.cluster, left)
    else this.#bytes.delete(charged.cluster)
  }

  async #fetch<T>(
    cluster: ClusterId,
    one: RemoteApiService,
    { path, accept, digest }: WantedDocument<T>,
  ): Promise<Digest<T> | undefined> {
    let found: Digest<T> | undefined
    const turn = (): Promise<void> | undefined => this.#turnOf(cluster)
    const reading = async ({ status, body }: { readonly status: number; readonly body: Uint8Array }): Promise<void> => {
      if (status !== 200) return
      const document = await parseJsonInTurns(body, { ...bounds, turn })
      if (isJsonObject(document)) found = await digest(document, turn)
    }
    try {
      await this.#servers.get(cluster, one, path, { accept, timeoutMs, reading, signal: this.#life })
      return found
    } catch {
      // Discovery shows the group version as stale, and the condition Available has the reason.
      return undefined
    }
  }
}
