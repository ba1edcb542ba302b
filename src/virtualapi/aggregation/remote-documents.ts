// Documents of aggregated API servers, for discovery: fetched when somebody asks, and used again for a while. A server that
// does not answer delays one request in a while, not each.
import { parseJsonText } from '../../apimachinery/json/index.ts'
import { LRUCache } from 'lru-cache'
import { abortable } from '../../async/index.ts'
import type { ClusterId, JsonValue } from '../../apimachinery/meta/index.ts'
import type { AggregatedServers } from './aggregated-servers.ts'
import type { RemoteApiService, RemoteServer } from './remote-api-service.ts'

const keptMs = 30_000
const failureKeptMs = 5000
const timeoutMs = 5000

interface WantedDocument {
  readonly path: string
  readonly accept: string
}

interface Kept {
  readonly server: RemoteServer
  readonly until: number
  readonly document: Promise<JsonValue | undefined>
}

/** Fetches and keeps documents. Their number is bounded, and so is the size of each (see AggregatedServers). */
export class RemoteDocuments {
  readonly #servers: AggregatedServers
  readonly #life: AbortSignal
  readonly #kept = new LRUCache<string, Kept>({ max: 500 })

  constructor({ servers, signal }: { servers: AggregatedServers; signal: AbortSignal }) {
    this.#servers = servers
    this.#life = signal
  }

  /** The JSON document at a path; undefined if the server did not answer with one. Rejects with signal.reason alone. */
  async get(
    cluster: ClusterId,
    one: RemoteApiService,
    wanted: WantedDocument,
    signal: AbortSignal,
  ): Promise<JsonValue | undefined> {
    const key = `${cluster}/${one.name}${wanted.path}`
    const known = this.#kept.get(key)
    if (known !== undefined && known.server === one.remote && performance.now() < known.until)
      return await abortable(known.document, signal)
    // Not with the signal of the request: others wait for the same document.
    const document = this.#fetch(cluster, one, wanted)
    this.#kept.set(key, { server: one.remote, until: performance.now() + keptMs, document })
    const value = await abortable(document, signal)
    if (value === undefined)
      this.#kept.set(key, { server: one.remote, until: performance.now() + failureKeptMs, document })
    return value
  }

  async #fetch(
    cluster: ClusterId,
    one: RemoteApiService,
    { path, accept }: WantedDocument,
  ): Promise<JsonValue | undefined> {
    try {
      const { status, body } = await this.#servers.get(cluster, one, path, { accept, timeoutMs, signal: this.#life })
      return status === 200 ? parseJsonText(body.toString()) : undefined
    } catch {
      // Discovery says that the group version is stale; the condition Available says why.
      return undefined
    }
  }
}
