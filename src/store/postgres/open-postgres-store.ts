// The store in a PostgreSQL, in a schema of its own. Writes are collected while a batch is under way; a batch is one
// statement and one transaction, and gives its writes consecutive revisions.
//
// The row `meta` holds the id of the installation's data and the process that writes them. In an installation of one
// process, a batch is done only while that row names the process: from the moment a successor has started, nothing that
// its predecessor still has under way is written.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { abortable, isAborted } from '#async/index.ts'
import { ClustersByResource } from '#store/clusters-by-resource.ts'
import { EventLog, keyOf, lastStates, revisionOf, sizeOf, watchLog, type Change } from '#store/event-log.ts'
import type { KeyRange } from '#store/key-bytes.ts'
import { openedValue } from '#store/seal.ts'
import { atRest, closedStore, containsAny, type SharedServerOptions } from '#store/shared-server.ts'
import {
  isStoreError,
  StoreError,
  type Creating,
  type ListResult,
  type ListScope,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Updating,
  type Waiting,
} from '#store/store.ts'
import { EventStream, type Page } from './event-stream.ts'
import { countObjects, objects, requireHistory, run, takeOver, trimHistory, type Owner } from './installation.ts'
import { quoted } from './schema.ts'
import { asStoreError, isOutage, Servers, type PostgresServers, type Row, type Session } from './servers.ts'
import { channelOf, Writer, type StoredRow, type Written } from './writer.ts'

export interface PostgresStoreOptions extends SharedServerOptions {
  readonly servers: PostgresServers
  /** The schema with the tables; it is created if it is missing. */
  readonly schema: string
  /** Milliseconds of history that is kept for watches. Default 5 min, as in kube-apiserver. */
  readonly historyMs?: number
  /** Size limit of one value. Default 3 MiB, the request limit of kube-apiserver. */
  readonly maxValueBytes?: number
}

const defaultHistoryMs = 5 * 60_000
/** Objects and bytes of values in one answer. */
const [pageSize, pageBytes] = [500, 4 * 1024 * 1024]
/** Logical clusters that one statement reads objects of. */
const rangesAtATime = 200
/** Changes that a resumed watch may read from the history, and their bytes: a tenant may write a large object often. */
const maxChanges = 100_000
const maxChangedBytes = 64 * 1024 * 1024
/** For so long a question is asked again while no server answers. */
const askAfterMs = 10_000
const retryMs = 100
/** Without a notification, changes of other processes are asked for so often. */
const pollMs = 1000

/**
 * Opens the store. Rejects StoreError Unavailable with one line for the user if no server can be used, or if the data
 * belong to another installation, are sealed with another key, or have the layout of a newer program. Changes nothing in
 * these cases.
 */
export async function openPostgresStore(options: PostgresStoreOptions & Waiting): Promise<Store> {
  const state: { store?: PostgresStore } = {}
  const schema = quoted(options.schema)
  const servers = new Servers({
    servers: options.servers,
    check: async (session) => {
      if (state.store !== undefined) await requireHistory(session, schema, state.store.known)
    },
  })
  try {
    const store = await abortable(open(servers, schema, options), options.signal)
    state.store = store
    return store
  } catch (error) {
    await servers[Symbol.asyncDispose]()
    throw asStoreError(error)
  }
}

async function open(servers: Servers, schema: string, options: PostgresStoreOptions): Promise<PostgresStore> {
  const { owner: name, seal, mayWriteForMs, succession, mustExist = false } = options
  const isAlone = mayWriteForMs === undefined
  const owner = await takeOver(servers, schema, {
    ...{ owner: name, seal, isAlone, name: options.schema, succession, mustExist },
  })
  const clusters = new ClustersByResource()
  const log = new EventLog()
  log.start(await countObjects(servers, schema, clusters))
  const store = new PostgresStore({ servers, schema, clusters, log, options, owner })
  store.start()
  return store
}

interface Parts {
  readonly servers: Servers
  readonly schema: string
  readonly clusters: ClustersByResource
  readonly log: EventLog
  readonly options: PostgresStoreOptions
  readonly owner: Owner
}

interface ObjectRow extends Row {
  readonly now: number
  readonly key: Buffer | null
  readonly revision: number
  readonly created: number
  readonly value: Buffer | null
  /** Rows that the server found, of which only some fit into the bytes of a page. */
  readonly total: number
}

interface LogRow extends ObjectRow {
  readonly from: number
  readonly before: number | null
  readonly old: Buffer | null
  readonly old_created: number | null
}

class PostgresStore implements Store {
  readonly maxValueBytes: number
  readonly instanceId: string
  readonly stream: EventStream
  readonly #parts: Parts
  readonly #life = new AbortController()
  readonly #writer: Writer
  #running: Promise<unknown> | undefined

  readonly #readable = (key: ObjectKey, row: StoredRow): StoredObject | undefined => {
    try {
      return this.#object(key, row)
    } catch (error) {
      this.#onProblem('an object in PostgreSQL cannot be read and is left out', error)
      return undefined
    }
  }

  constructor(parts: Parts) {
    const { log, options, owner } = parts
    this.#parts = parts
    this.maxValueBytes = options.maxValueBytes ?? 3 * 1024 * 1024
    this.instanceId = owner.instance
    this.stream = new EventStream({
      log,
      read: (since) => this.#page(since, objects.all, 'own'),
      seen: (change) => this.#count(change),
      onProblem: this.#onProblem,
      signal: this.#life.signal,
    })
    const { servers, schema } = parts
    const { stream } = this
    const { mayWriteForMs } = options
    this.#writer = new Writer({ servers, schema, owner, stream, mayWriteForMs, readable: this.#readable })
  }

  /** What a server must have that is written to. */
  get known(): { readonly revision: Revision; readonly last: EventStream['last'] } {
    return { revision: this.#parts.log.revision, last: this.stream.last }
  }

  start(): void {
    this.#running = Promise.all([this.#trim(), ...(this.#isAlone ? [] : [this.#listen(), this.#poll()])])
  }

  async get(key: ObjectKey, { signal }: Waiting): Promise<StoredObject | undefined> {
    const { schema } = this.#parts
    const [row] = await this.#read(signal, (session) =>
      session.rows<ObjectRow>({
        name: 'get',
        text: `SELECT k.key, k.revision, k.created, l.value FROM ${schema}.keys k
          JOIN ${schema}.log l ON l.revision = k.revision WHERE k.key = $1`,
        values: [objects.key(key)],
      }),
    )
    return row && this.#object(key, row)
  }

  async list(
    scope: ListScope,
    { limit = Infinity, after, signal }: Waiting & { limit?: number; after?: ObjectKey },
  ): Promise<ListResult> {
    const { cluster, resource } = scope
    const from = after && objects.after(objects.key(after))
    const rangesOf = (clusters: readonly (ClusterId | undefined)[]): readonly KeyRange[] =>
      clusters
        .map((one) => objects.range({ ...scope, ...(one !== undefined && { cluster: one }) }))
        .filter(({ end }) => from === undefined || Buffer.compare(from, end) < 0)
        .map(({ start, end }) => ({ start: from !== undefined && Buffer.compare(from, start) > 0 ? from : start, end }))
    const found = await this.#read(signal, async (session) => {
      const listing = new Listing(limit, scope.containing)
      const isOverAll = cluster === undefined && resource !== undefined
      // Most lists are one page, which is one state by itself.
      if (!isOverAll) {
        const left = await this.#listPage(session, { ranges: rangesOf([cluster]), key: undefined }, listing)
        if (left === undefined) return listing
      }
      const all = new Listing(limit, scope.containing)
      const before = isOverAll ? this.#parts.clusters.clustersOf(resource) : []
      await run(session, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      let clusters: readonly (ClusterId | undefined)[] = [cluster]
      if (isOverAll) {
        const [row] = await session.rows<{ now: number }>({
          text: `SELECT revision AS now FROM ${this.#parts.schema}.meta`,
        })
        // The table of resources is then at least as new as the state that the transaction shows.
        await this.stream.reached(row?.now ?? 0)
        all.revision = row?.now ?? 0
        // Before, because the last object of a logical cluster may go while this waits.
        clusters = [...new Set([...before, ...this.#parts.clusters.clustersOf(resource)])].sort()
      }
      const ranges = rangesOf(clusters)
      let left: Rest | undefined = ranges.length === 0 ? undefined : { ranges, key: undefined }
      while (left !== undefined) {
        signal.throwIfAborted()
        left = await this.#listPage(session, left, all)
      }
      await run(session, 'COMMIT')
      return all
    })
    await this.stream.reached(found.revision)
    const { items, next } = found
    return { items, revision: found.revision as Revision, ...(next !== undefined && { next }) }
  }

  async create(key: ObjectKey, value: Uint8Array, { signal, above = 0 as Revision }: Creating): Promise<StoredObject> {
    const written = await this.#put(signal, { kind: 'create', key, value, ifRevision: 0, above })
    return { key, ...written, value }
  }

  async update(key: ObjectKey, value: Uint8Array, { signal, ifRevision }: Updating): Promise<StoredObject> {
    const written = await this.#put(signal, { kind: 'update', key, value, ifRevision, above: 0 })
    return { key, ...written, value }
  }

  async delete(key: ObjectKey, { signal, ifRevision }: Waiting & { ifRevision: Revision }): Promise<Revision> {
    return (await this.#writer.write(signal, { kind: 'delete', key, ifRevision, above: 0 })).revision
  }

  async deleteCluster(cluster: ClusterId, { signal }: Waiting): Promise<void> {
    const { start, end } = objects.range({ cluster })
    for (;;) {
      signal.throwIfAborted()
      const rows = await this.#read(signal, (session) =>
        session.rows<ObjectRow>({
          text: `SELECT key, revision FROM ${this.#parts.schema}.keys WHERE key >= $1 AND key < $2 ORDER BY key LIMIT ${pageSize}`,
          values: [start, end],
        }),
      )
      if (rows.length === 0) return
      const deletions = rows.map(async ({ key, revision }) => {
        const parsed = key === null ? undefined : objects.parse(key)
        if (parsed === undefined) throw new StoreError('Unavailable', 'a key in PostgreSQL cannot be read')
        try {
          await this.delete(parsed, { signal, ifRevision: revision as Revision })
        } catch (error) {
          // It has changed or gone since it was listed: the next round has it as it is.
          if (!isStoreError(error) || !['KeyMissing', 'RevisionMismatch'].includes(error.code)) throw error
        }
      })
      await Promise.all(deletions)
    }
  }

  watch({ since, signal }: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]> {
    return watchLog(this.#parts.log, { since, signal }, (until) =>
      this.#history(objects.all, { since, until, isWanted: () => true }, signal),
    )
  }

  async changes(
    { cluster, resource }: { cluster?: ClusterId; resource: string },
    { signal, since }: Waiting & { since: Revision },
  ): Promise<readonly StoreEvent[]> {
    const range = objects.range(cluster === undefined ? {} : { cluster, resource })
    const until = await this.revision({ signal })
    if (since >= until) return []
    const isWanted = (change: Change): boolean => keyOf(change).resource === resource
    return lastStates(await this.#history(range, { since, until, isWanted }, signal), since)
  }

  async revision({ signal }: Waiting): Promise<Revision> {
    const [row] = await this.#read(signal, (session) =>
      session.rows<{ now: number }>({
        name: 'revision',
        text: `SELECT revision AS now FROM ${this.#parts.schema}.meta`,
      }),
    )
    await this.stream.reached(row?.now ?? 0)
    return this.#parts.log.revision
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort()
    const error = closedStore()
    this.stream.fail(error)
    await this.#writer.close(error)
    await this.#running
    await this.stream.ended()
    await this.#parts.servers[Symbol.asyncDispose]()
  }

  get #isAlone(): boolean {
    return this.#parts.options.mayWriteForMs === undefined
  }

  readonly #onProblem = (message: string, error: unknown): void => this.#parts.options.onProblem?.(message, error)

  /** Reads a page of the ranges into `found`. Returns what is left to read; undefined at the end. */
  async #listPage(session: Session, { ranges, key }: Rest, found: Listing): Promise<Rest | undefined> {
    const { schema } = this.#parts
    const some = ranges.slice(0, rangesAtATime)
    const asked = Math.min(found.wanted, pageSize)
    const rows = await session.rows<ObjectRow>({
      name: 'list',
      text: `SELECT m.revision AS now, t.* FROM ${schema}.meta m LEFT JOIN (
        SELECT key, revision, created, value, total FROM (
          SELECT k.key, k.revision, k.created, l.value, count(*) OVER () AS total,
            sum(coalesce(octet_length(l.value), 0)) OVER (ORDER BY k.key) - coalesce(octet_length(l.value), 0) AS bytes_before
          FROM (
            SELECT o.* FROM unnest($1::bytea[], $2::bytea[]) AS r (first, past) CROSS JOIN LATERAL (
              SELECT * FROM ${schema}.keys WHERE key >= r.first AND key < r.past ORDER BY key LIMIT $3
            ) o ORDER BY o.key LIMIT $3
          ) k LEFT JOIN ${schema}.log l ON l.revision = k.revision
        ) p WHERE bytes_before < ${pageBytes}
      ) t ON true ORDER BY t.key`,
      values: [
        some.map(({ start }) => (key !== undefined && Buffer.compare(key, start) > 0 ? key : start)),
        some.map(({ end }) => end),
        asked,
      ],
    })
    found.revision = rows[0]?.now ?? 0
    let last: Buffer | undefined
    let [count, total] = [0, 0]
    for (const row of rows) {
      if (row.key === null) continue
      const parsed = objects.parse(row.key)
      const object = parsed && this.#readable(parsed, row)
      if (object !== undefined) found.add(object)
      last = row.key
      count += 1
      total = row.total
    }
    if (found.wanted <= 0) return undefined
    // The page was full, by number or by bytes: more of these ranges may follow it.
    if (last !== undefined && (total >= asked || count < total)) {
      const from = objects.after(last)
      return { ranges: ranges.filter(({ end }) => Buffer.compare(end, from) > 0), key: from }
    }
    const others = ranges.slice(some.length)
    return others.length === 0 ? undefined : { ranges: others, key: undefined }
  }

  /** The changes of the range in (since, until], oldest first. */
  async #history(
    range: KeyRange,
    { since, until, isWanted }: { since: number; until: number; isWanted: (change: Change) => boolean },
    signal: AbortSignal,
  ): Promise<readonly Change[]> {
    const changes: Change[] = []
    let bytes = 0
    let from = since as Revision
    for (;;) {
      signal.throwIfAborted()
      const page = await this.#asked(signal, () => this.#page(from, range))
      for (const change of page.changes) {
        if (revisionOf(change) > until || !isWanted(change)) continue
        changes.push(change)
        bytes += sizeOf(change)
      }
      if (changes.length > maxChanges || bytes > maxChangedBytes)
        throw new StoreError('Compacted', 'there are too many changes since then')
      if (!page.hasMore || page.upTo >= until) return changes
      from = page.upTo
    }
  }

  /** The first changes of the range after `since`. Rejects StoreError Compacted if they are no longer known. */
  async #page(since: Revision, range: KeyRange, purpose: 'own' | 'questions' = 'questions'): Promise<Page> {
    const { servers, schema } = this.#parts
    const rows = await servers.rows<LogRow>(
      {
        name: 'page',
        text: `SELECT m.revision AS now, m.history_from AS from, t.* FROM ${schema}.meta m LEFT JOIN (
        SELECT * FROM (
          SELECT c.key, c.revision, c.created, c.value, c.previous AS before, o.value AS old, o.created AS old_created,
            count(*) OVER () AS total,
            sum(coalesce(octet_length(c.value), octet_length(o.value), 0)) OVER (ORDER BY c.revision)
              - coalesce(octet_length(c.value), octet_length(o.value), 0) AS bytes_before
          FROM (
            SELECT * FROM ${schema}.log WHERE revision > $1 AND key >= $2 AND key < $3 ORDER BY revision LIMIT ${pageSize}
          ) c LEFT JOIN ${schema}.log o ON c.value IS NULL AND o.revision = c.previous
        ) p WHERE bytes_before < ${pageBytes}
      ) t ON true ORDER BY t.revision`,
        values: [since, range.start, range.end],
      },
      { purpose },
    )
    const [first] = rows
    if (first === undefined) throw new StoreError('Unavailable', 'the data in PostgreSQL were removed')
    if (since < first.from)
      throw new StoreError('Compacted', `changes after revision ${since} are no longer known, only after ${first.from}`)
    const changes: Change[] = []
    for (const row of rows) {
      const change = this.#change(row)
      if (change !== undefined) changes.push(change)
    }
    const isFull = first.key !== null && (first.total >= pageSize || rows.length < first.total)
    const upTo = isFull ? (rows.at(-1)?.revision ?? first.now) : first.now
    return { changes, upTo: upTo as Revision, hasMore: isFull }
  }

  /** Runs a question in one connection. */
  async #read<T>(signal: AbortSignal, ask: (session: Session) => Promise<T>): Promise<T> {
    return await this.#asked(signal, () => this.#parts.servers.session(ask))
  }

  /** Runs a question again while another server may answer it; the errors are those of a Store. */
  async #asked<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#life.signal.aborted) throw closedStore()
    const answer = (async () => {
      const deadline = performance.now() + askAfterMs
      for (;;) {
        try {
          return await ask()
        } catch (error) {
          signal.throwIfAborted()
          const isOver = performance.now() > deadline || this.#life.signal.aborted
          if (isStoreError(error) || !isOutage(error) || isOver) throw asStoreError(error)
          await sleep(retryMs)
        }
      }
    })()
    answer.catch(() => undefined)
    return await abortable(answer, signal)
  }

  async #put(
    signal: AbortSignal,
    write: {
      readonly kind: 'create' | 'update'
      readonly key: ObjectKey
      readonly value: Uint8Array
      readonly ifRevision: number
      readonly above: number
    },
  ): Promise<Written> {
    return await this.#writer.write(signal, { ...write, stored: this.#toStore(write.key, write.value) })
  }

  #toStore(key: ObjectKey, value: Uint8Array): Uint8Array {
    return atRest(key, value, { seal: this.#parts.options.seal, most: this.maxValueBytes })
  }

  #object(key: ObjectKey, { revision, created, value }: StoredRow): StoredObject {
    if (value === null) throw new StoreError('Unavailable', `the value of "${key.resource}/${key.name}" is missing`)
    return {
      key,
      revision: revision as Revision,
      createRevision: created as Revision,
      value: openedValue(this.#parts.options.seal, key, value),
    }
  }

  /** Undefined if the value cannot be read, which is reported: one damaged value must not affect the others. */
  #change(row: LogRow): Change | undefined {
    const key = row.key === null ? undefined : objects.parse(row.key)
    if (key === undefined) return undefined
    if (row.value !== null) {
      const object = this.#readable(key, row)
      return object && { type: 'put', object }
    }
    const { before, created, old } = row
    const previous =
      before === null || old === null ? undefined : this.#readable(key, { revision: before, created, value: old })
    return { type: 'delete', key, revision: row.revision as Revision, ...(previous && { previous }) }
  }

  #count(change: Change): void {
    const { clusters } = this.#parts
    if (change.type === 'delete') clusters.remove(change.key)
    else if (change.object.revision === change.object.createRevision) clusters.add(change.object.key)
  }

  async #listen(): Promise<void> {
    const { servers, schema } = this.#parts
    const { signal } = this.#life
    while (!signal.aborted) {
      try {
        await servers.listen(quoted(channelOf(schema)), { heard: () => this.stream.ask(), signal })
      } catch {
        // The polls find the changes until the connection is back; a server that is gone is told by them.
      }
      await sleep(pollMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #poll(): Promise<void> {
    const { signal } = this.#life
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal }).catch(() => undefined)
      if (!isAborted(signal)) this.stream.ask()
    }
  }

  /** Drops history that is older than `historyMs`, as kube-apiserver does. */
  async #trim(): Promise<void> {
    const { servers, schema, options, log } = this.#parts
    const { historyMs = defaultHistoryMs } = options
    const { signal } = this.#life
    let old = 0
    while (!signal.aborted) {
      try {
        if (old > 0) await trimHistory(servers, schema, { until: old, signal })
        old = log.revision
      } catch (error) {
        if (!isAborted(signal)) this.#onProblem('old history in PostgreSQL was not dropped', error)
      }
      await sleep(historyMs, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** What a list has found so far. */
class Listing {
  readonly items: StoredObject[] = []
  next: ObjectKey | undefined
  revision = 0
  readonly #limit: number
  readonly #containing: readonly string[] | undefined

  constructor(limit: number, containing: readonly string[] | undefined) {
    this.#limit = limit
    this.#containing = containing
  }

  /** Objects that it takes until it knows whether the limit cuts it. */
  get wanted(): number {
    return this.next === undefined ? this.#limit + 1 - this.items.length : 0
  }

  add(object: StoredObject): void {
    if (!containsAny(object.value, this.#containing)) return
    if (this.items.length < this.#limit) this.items.push(object)
    else this.next ??= this.items.at(-1)?.key
  }
}

interface Rest {
  readonly ranges: readonly KeyRange[]
  /** Where the reading goes on; absent: at the start of the first range. */
  readonly key: Buffer | undefined
}
