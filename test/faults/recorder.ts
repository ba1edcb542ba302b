// Writers, readers and watchers that record their requests and answers, across restarts of the server.
import { setTimeout as delay } from 'node:timers/promises'
import type { Client, Json } from './client.ts'
import type {
  Content,
  Entry,
  Epoch,
  GetRead,
  History,
  ListRead,
  Outcome,
  Seen,
  Session,
  Watch,
  Write,
} from './history.ts'

/** A logical cluster with a client for it. */
export interface Place {
  readonly cluster: string
  readonly client: Client
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

const collection = '/api/v1/namespaces/default/configmaps'
const everywhere = '/api/v1/configmaps'
const selector = 'labelSelector=load'
const shards = ['s0', 's1', 's2']
const namesPerShard = 4

/** Interval between retries while the server is down, milliseconds. */
const retryMs = 20

export class Recorder {
  readonly writes: Mutable<Write>[] = []
  readonly lists: ListRead[] = []
  readonly gets: GetRead[] = []
  readonly watches: Watch[] = []
  /** Number of watches that received 410 and began again. */
  expired = 0
  /** Answers that are neither the expected result nor an expected refusal. */
  readonly unexpected: string[] = []
  /** Number of acknowledged writes. */
  acknowledged = 0
  /** Why writes have no sure answer: the error of the connection, or an answer of 5xx. */
  readonly failures: string[] = []
  readonly #random: () => number
  #restarts = 0
  #restartedAt = 0
  #up = Promise.withResolvers<undefined>()
  #tokens = 0

  constructor(seed: number) {
    this.#random = randomOf(seed)
    this.#up.resolve(undefined)
  }

  get history(): History {
    const { writes, lists, gets, watches } = this
    return { writes, lists, gets, watches }
  }

  random(): number {
    return this.#random()
  }

  /** The server is about to be killed: watchers wait for `restarted`. */
  goingDown(): void {
    this.#up = Promise.withResolvers<undefined>()
  }

  /** The server is gone: unanswered requests can no longer take effect if the store died with it. */
  gone(): void {
    const now = performance.now()
    for (const write of this.writes) if (write.outcome.is === 'unknown' && write.ended === Infinity) write.ended = now
  }

  /**
   * The server is back. Lists all logical clusters before any write: up to that revision a watch may receive final
   * states only.
   */
  async restarted(places: readonly Place[]): Promise<void> {
    this.#restarts++
    this.#restartedAt = 0
    for (const place of places) {
      const list = await this.list(place)
      if (list !== undefined) this.#restartedAt = Math.max(this.#restartedAt, list.revision)
    }
    this.#up.resolve(undefined)
  }

  /**
   * One of several servers was killed and is about to start again. If nobody took over meanwhile, a watch may receive
   * final states only of what it was not told before; of what happens from now on it must receive every event.
   */
  restarting(): void {
    this.#restarts++
    const written = this.writes.map(({ outcome }) => (outcome.is === 'done' ? (outcome.seen?.revision ?? 0) : 0))
    this.#restartedAt = Math.max(0, ...written, ...this.lists.map(({ revision }) => revision))
  }

  /** The server never stopped, and its dependencies are back: a resumed watch must receive every event. */
  resumed(): void {
    this.#up.resolve(undefined)
  }

  /** Writes until stopped, or until the server goes down. */
  async write(place: Place, writer: number, stopped: () => boolean): Promise<void> {
    while (!stopped()) {
      const name = `${pick(shards, this.#random)}-${Math.floor(this.#random() * namesPerShard)}`
      const dice = this.#random()
      const went = await (dice < 0.3
        ? this.#create(place, name, writer)
        : dice < 0.6
          ? this.#update(place, name)
          : dice < 0.85
            ? this.#patch(place, name, writer)
            : dice < 0.99
              ? this.#delete(place, name)
              : this.#deleteCollection(place))
      if (!went) return
    }
  }

  /** Lists in every supported way until stopped, or until the server goes down. */
  async read(place: Place, stopped: () => boolean): Promise<void> {
    for (let round = 0; !stopped(); round++) {
      const way = (['plain', 'paged', 'exact'] as const)[round % 3]
      const done = await (way === 'plain'
        ? this.list(place)
        : way === 'paged'
          ? this.list(place, { limit: 3 })
          : this.#listExactly(place))
      if (done === undefined) return
      await delay(5)
    }
  }

  /** Lists and records all objects; undefined when no answer came. */
  async list({ cluster, client }: Place, { limit = 0 } = {}): Promise<ListRead | undefined> {
    const begun = performance.now()
    const path = `${cluster === '*' ? everywhere : collection}?${selector}`
    const items: Seen[] = []
    let revision = 0
    let token = ''
    do {
      const page = `${path}${limit > 0 ? `&limit=${limit}` : ''}${token === '' ? '' : `&continue=${token}`}`
      const response = await client.request('GET', page).catch(() => undefined)
      if (response === undefined || response.status >= 500) return undefined
      if (token !== '' && response.status === 410) return undefined
      const at = Number(response.body.metadata?.resourceVersion)
      if (response.status !== 200 || !(at > 0) || (token !== '' && at !== revision)) {
        this.unexpected.push(`${page}: ${response.status} at ${at} after ${revision}: ${response.body.message ?? ''}`)
        return undefined
      }
      revision = at
      for (const item of response.body.items ?? []) items.push(seenOf(cluster, item))
      token = encodeURIComponent(response.body.metadata?.continue ?? '')
    } while (token !== '')
    const list = { cluster, revision, items, begun, ended: performance.now(), latest: true }
    this.lists.push(list)
    return list
  }

  /** Lists at a revision that was observed a moment ago. */
  async #listExactly({ cluster, client }: Place): Promise<true | undefined> {
    const known = this.lists.findLast((list) => list.cluster === cluster)?.revision ?? 0
    const newer = this.writes.at(-1 - Math.floor(this.#random() * 20))?.outcome
    const wanted = Math.max(known, newer?.is === 'done' ? (newer.seen?.revision ?? 0) : 0)
    if (wanted === 0) return true
    const begun = performance.now()
    const path = `${collection}?${selector}&resourceVersion=${wanted}&resourceVersionMatch=Exact`
    const response = await client.request('GET', path).catch(() => undefined)
    if (response === undefined || response.status >= 500) return undefined
    // Too old: 410 is the correct answer.
    if (response.status === 410) return true
    const revision = Number(response.body.metadata?.resourceVersion)
    if (response.status !== 200 || revision !== wanted)
      this.unexpected.push(`${path}: ${response.status} at ${revision}`)
    const items = (response.body.items ?? []).map((item) => seenOf(cluster, item))
    this.lists.push({ cluster, revision, items, begun, ended: performance.now(), latest: false })
    return true
  }

  /** Watches until aborted; after every disconnect it resumes from the last received revision. */
  async watch({ cluster, client }: Place, { title, query, breaks, signal }: WatchOptions): Promise<void> {
    const watch: Watch = { title, cluster, epochs: [] }
    this.watches.push(watch)
    let epoch: Epoch | undefined
    let restarts = this.#restarts
    let last = 0
    while (!signal.aborted) {
      await this.#up.promise
      if (epoch === undefined) {
        const list = await this.list({ cluster, client })
        if (list === undefined) {
          await delay(retryMs)
          continue
        }
        epoch = { list, sessions: [] }
        watch.epochs.push(epoch)
        last = list.revision
        restarts = this.#restarts
      }
      const entries: Entry[] = []
      const anew = this.#restarts > restarts ? { restartedAt: this.#restartedAt } : {}
      restarts = this.#restarts
      const session: Session = { since: last, ...anew, begun: performance.now(), entries }
      epoch.sessions.push(session)
      const end = new AbortController()
      const stop = (): void => end.abort()
      signal.addEventListener('abort', stop)
      try {
        const path = `${cluster === '*' ? everywhere : collection}?watch=true&${selector}&${query}&resourceVersion=${last}`
        const { status, lines } = await client.watch(path, end.signal)
        if (status === 410) {
          this.expired++
          epoch = undefined
          end.abort()
          continue
        }
        if (status !== 200) {
          end.abort()
          await delay(retryMs)
          continue
        }
        let count = 0
        for await (const line of lines) {
          if (line.type === 'ERROR') {
            if (line.object?.code === 410) {
              this.expired++
              epoch = undefined
            } else this.unexpected.push(`${title}: ${JSON.stringify(line).slice(0, 300)}`)
            break
          }
          const entry = entryOf(cluster, line)
          entries.push(entry)
          last = Math.max(last, entry.type === 'BOOKMARK' ? entry.revision : entry.seen.revision)
          if (breaks > 0 && ++count % breaks === 0) break
        }
      } catch {
        // The connection broke: the server went down, or this watch closed it on purpose.
        await delay(retryMs)
      } finally {
        end.abort()
        signal.removeEventListener('abort', stop)
      }
    }
  }

  /** The last revision that each watch received. */
  positions(): readonly { readonly title: string; readonly cluster: string; readonly revision: number }[] {
    return this.watches.map(({ title, cluster, epochs }) => {
      const { list, sessions } = epochs.at(-1) ?? {}
      const told = sessions?.flatMap(({ since, entries }) => [
        since,
        ...entries.map((entry) => (entry.type === 'BOOKMARK' ? entry.revision : entry.seen.revision)),
      ])
      return { title, cluster, revision: Math.max(list?.revision ?? 0, ...(told?.slice(-1) ?? [])) }
    })
  }

  /** Writes an object whose event must reach every watch of this logical cluster. */
  async mark(place: Place, name: string): Promise<number> {
    await this.#create(place, name, 0)
    const { outcome } = this.writes.at(-1) ?? {}
    return outcome?.is === 'done' ? (outcome.seen?.revision ?? 0) : 0
  }

  async #create(place: Place, name: string, writer: number): Promise<boolean> {
    const token = this.#token(place, writer)
    const body = { metadata: metadataOf(name, { value: token }), data: { value: token } }
    return this.#do(place, { kind: 'create', name, token, key: 'value' }, 'POST', collection, { body })
  }

  async #update(place: Place, name: string): Promise<boolean> {
    const begun = performance.now()
    const response = await place.client.request('GET', `${collection}/${name}`).catch(() => undefined)
    if (response === undefined || response.status >= 500) return false
    const seen = response.status === 200 ? seenOf(place.cluster, response.body) : undefined
    this.gets.push({ cluster: place.cluster, name, seen, begun, ended: performance.now() })
    if (seen === undefined) return true
    const token = this.#token(place, 0)
    const { uid, revision } = seen
    const metadata = { ...metadataOf(name, { value: token }), uid, resourceVersion: String(revision) }
    const write = { kind: 'update', name, token, key: 'value', ifRevision: revision } as const
    return this.#do(place, write, 'PUT', `${collection}/${name}`, { body: { metadata, data: { value: token } } })
  }

  async #patch(place: Place, name: string, writer: number): Promise<boolean> {
    const token = this.#token(place, writer)
    const key = `w${writer}`
    const body = { metadata: { annotations: { [`mirror/${key}`]: token } }, data: { [key]: token } }
    const options = { body, contentType: 'application/merge-patch+json' }
    return this.#do(place, { kind: 'patch', name, token, key }, 'PATCH', `${collection}/${name}`, options)
  }

  async #delete(place: Place, name: string): Promise<boolean> {
    return this.#do(place, { kind: 'delete', name }, 'DELETE', `${collection}/${name}`, {})
  }

  /** Deletes the collection of one shard only; objects of the others are deleted only by name. */
  async #deleteCollection(place: Place): Promise<boolean> {
    const path = `${collection}?labelSelector=load,shard=s0`
    return this.#do(place, { kind: 'deletecollection', name: 's0-' }, 'DELETE', path, {})
  }

  async #do(
    { cluster, client }: Place,
    what: Pick<Write, 'kind' | 'name' | 'token' | 'key' | 'ifRevision'>,
    method: string,
    path: string,
    options: { body?: object; contentType?: string },
  ): Promise<boolean> {
    const begun = performance.now()
    const write: Mutable<Write> = { ...what, cluster, begun, ended: Infinity, outcome: { is: 'unknown' } }
    this.writes.push(write)
    const response = await client.request(method, path, options).catch((error: unknown) => {
      this.failures.push(`${method} ${path}: ${String(error)}`)
      return undefined
    })
    if (response === undefined) return false
    if (response.status >= 500) {
      this.failures.push(`${method} ${path}: ${response.status} ${response.body.message ?? ''}`)
      return false
    }
    write.ended = performance.now()
    write.outcome = outcomeOf(cluster, what.kind, response)
    const { is } = write.outcome
    if (is === 'done') this.acknowledged++
    if (is === 'refused' && ![404, 409, 429].includes(response.status))
      this.unexpected.push(`${method} ${path}: ${response.status} ${response.body.message ?? ''}`)
    return true
  }

  #token({ cluster }: Place, writer: number): string {
    return `${cluster}/${writer}.${++this.#tokens}`
  }
}

interface WatchOptions {
  readonly title: string
  /** Further query parameters: `allowWatchBookmarks=true`, `timeoutSeconds=2`. */
  readonly query: string
  /** Closes the connection itself after this many events; 0: never. */
  readonly breaks: number
  readonly signal: AbortSignal
}

function outcomeOf(
  cluster: string,
  kind: Write['kind'],
  { status, body }: { readonly status: number; readonly body: Json },
): Outcome {
  if (status >= 300) return { is: 'refused', code: status }
  if (kind === 'delete') return { is: 'done', uids: [body.details?.uid ?? body.metadata?.uid ?? ''] }
  if (kind === 'deletecollection')
    return { is: 'done', uids: (body.items ?? []).map(({ metadata }) => metadata?.uid ?? '') }
  return { is: 'done', seen: seenOf(cluster, body) }
}

function metadataOf(name: string, mirror: Readonly<Record<string, string>>): object {
  const annotations = Object.fromEntries(Object.entries(mirror).map(([key, value]) => [`mirror/${key}`, value]))
  return { name, labels: { load: 'yes', shard: name.split('-')[0] ?? '' }, annotations }
}

/** Converts an object for the checker; over all logical clusters an annotation names its cluster. */
function seenOf(scope: string, { metadata = {}, data = {} }: Json): Seen {
  const { name = '', uid = '', resourceVersion = '', annotations = {} } = metadata
  const mirror = Object.fromEntries(
    Object.entries(annotations)
      .filter(([key]) => key.startsWith('mirror/'))
      .map(([key, value]) => [key.slice('mirror/'.length), value]),
  )
  const content: Content = { data, mirror }
  const cluster = scope === '*' ? (annotations['kcp.dev/logical-cluster'] ?? '?') : scope
  return { cluster, name, uid, revision: Number(resourceVersion), content }
}

function entryOf(cluster: string, { type = '', object = {} }: Json): Entry {
  if (type === 'BOOKMARK') return { type, revision: Number(object.metadata?.resourceVersion) }
  if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') return { type, seen: seenOf(cluster, object) }
  throw new Error(`a watch event of type "${type}"`)
}

/** Random numbers from 0 to 1 that depend only on the seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

function pick<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)] as T
}
