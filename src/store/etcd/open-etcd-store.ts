// The store in an etcd of its own or a shared one, below a prefix. etcd gives the revisions; a write is acknowledged
// after etcd's watch has delivered it.
//
// The key `PREFIX/owner` holds the id of the installation's data and the process that writes them. In an installation of
// one process, every write is a transaction that succeeds only while that key is as the process wrote it at its start:
// from the moment a successor has started, nothing that its predecessor still has under way is written.
import { setTimeout as sleep } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { abortable } from '#async/index.ts'
import { EventLog, keyOf, keyTextOf, lastStates, revisionOf, sizeOf, watchLog, type Change } from '#store/event-log.ts'
import { openedValue, type Seal } from '#store/seal.ts'
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
  type Succession,
  type Updating,
  type Waiting,
} from '#store/store.ts'
import { EtcdClient, isOutage, isServiceError, type EtcdEndpoints } from './etcd-client.ts'
import { EventStream } from './event-stream.ts'
import type { KeyRange } from '#store/key-bytes.ts'
import { EtcdKeys } from './keys.ts'
import type { Compare, KeyValue, RangeRequest, RequestOp, TxnResponse, WatchEvent } from './messages.ts'
import { ClustersByResource } from '#store/clusters-by-resource.ts'

export interface EtcdStoreOptions extends SharedServerOptions {
  readonly endpoints: EtcdEndpoints
  /** Begins all keys, such as `/kcp`. */
  readonly prefix: string
  /** Milliseconds of history that etcd keeps; 0: somebody else compacts it. Default 5 min, as in kube-apiserver. */
  readonly historyMs?: number
  /** Size limit of one value. Default 1.5 MiB less what keys and messages take, as etcd's own default. */
  readonly maxValueBytes?: number
}

interface Owner {
  readonly instanceId: string
  readonly owner: string
  readonly keyId: string
  /** Differs for every start. */
  readonly process: string
  /** Changes up to this revision were in another store. */
  readonly floor?: number
}

/** etcd's default limit of a request, and what is left of it for the key and the rest of the transaction. */
const etcdRequestBytes = 1.5 * 1024 * 1024
const requestOverheadBytes = 8 * 1024
const defaultHistoryMs = 5 * 60_000
/** Objects in one answer of etcd. */
const pageSize = 500
const deletesAtATime = 64
/** Changes that a resumed watch may read from etcd's history, and their bytes: a tenant may write a large object often. */
const maxChanges = 100_000
const maxChangedBytes = 64 * 1024 * 1024
const maxWaiting = 4096
/** How far a create raises the revision at most: some 3,000 writes of a few bytes take a second, and a request 60 s at most. */
const maxRaised = 100_000
const raisedAtATime = 256
/** For so long a write whose outcome is not known is asked after. */
const askAfterMs = 10_000
const retryMs = 100
/** A write is not begun if the process may write for less than this, milliseconds. */
const minWriteMs = 100
/** Progress requests are answered correctly from this version on. */
const oldestVersion = [3, 5, 8] as const

/**
 * Opens the store. Rejects StoreError Unavailable with one line for the user if etcd cannot be reached or is too old, or
 * if the data belong to another installation or are sealed with another key. Changes nothing in these cases.
 */
export async function openEtcdStore(options: EtcdStoreOptions & Waiting): Promise<Store> {
  const client = new EtcdClient(options.endpoints)
  try {
    return await abortable(open(client, options), options.signal)
  } catch (error) {
    client[Symbol.dispose]()
    throw asStoreError(error)
  }
}

async function open(client: EtcdClient, options: EtcdStoreOptions & Waiting): Promise<Store> {
  const { prefix, seal, onProblem = () => undefined } = options
  const { version } = await client.status()
  requireVersion(version)
  const keys = new EtcdKeys(prefix)
  const isShared = options.mayWriteForMs !== undefined
  const { owner: name, succession, mustExist = false } = options
  const { owner, revision } = await takeOver(client, {
    keys,
    seal,
    owner: name,
    prefix,
    isShared,
    succession,
    mustExist,
  })
  const log = new EventLog()
  const resources = new ClustersByResource()
  const first = await scan(client, { range: keys.all, keysOnly: true }, (kv) => {
    const key = keys.parse(kv.key)
    if (key !== undefined) resources.add(key)
    return true
  })
  log.start(first as Revision)
  const store = new EtcdStore({
    client,
    keys,
    seal,
    log,
    resources,
    options,
    onProblem,
    owner,
    ownerRevision: revision,
  })
  store.start()
  if (succession !== undefined) await store.raise(succession.revision, options.signal)
  return store
}

function requireVersion(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number)
  const [wantedMajor, wantedMinor, wantedPatch] = oldestVersion
  const isNew =
    major > wantedMajor ||
    (major === wantedMajor && (minor > wantedMinor || (minor === wantedMinor && patch >= wantedPatch)))
  if (!isNew)
    throw new StoreError('Unavailable', `etcd is ${version}: update it to ${oldestVersion.join('.')} or newer`)
}

/**
 * Writes that this process is the writer from now on. Returns the revision of this. `isShared`: only makes the entry if
 * there is none.
 */
async function takeOver(
  client: EtcdClient,
  {
    keys,
    seal,
    owner,
    prefix,
    isShared,
    succession,
    mustExist,
  }: {
    keys: EtcdKeys
    seal: Seal
    owner: string
    prefix: string
    isShared: boolean
    succession: Succession | undefined
    mustExist: boolean
  },
): Promise<{ owner: Owner; revision: number }> {
  for (;;) {
    const { kvs } = await client.range({ key: keys.owner })
    const [kv] = kvs
    const known = kv && readOwner(kv, prefix)
    if (known !== undefined && known.owner !== owner)
      throw new StoreError(
        'Unavailable',
        `prefix ${prefix} in etcd holds the data of ${known.owner}: choose another prefix, or start from there`,
      )
    if (known !== undefined && !seal.opens(known.keyId))
      throw new StoreError(
        'Unavailable',
        `Secrets below ${prefix} in etcd are sealed with another key: restore its file`,
      )
    if (mustExist && known === undefined)
      throw new StoreError('Unavailable', `prefix ${prefix} in etcd has no data of kcp: say the one that has`)
    if (succession !== undefined && known !== undefined && known.instanceId !== succession.instanceId)
      throw new StoreError('Unavailable', `prefix ${prefix} in etcd has data already: choose another prefix`)
    if (isShared && kv !== undefined && known !== undefined) return { owner: known, revision: kv.modRevision }
    if (known === undefined) await requireEmpty(client, keys, prefix)
    // A migration that goes on: the store that is replaced may have been written to meanwhile.
    const floors = [known?.floor, succession?.revision].filter((one) => one !== undefined)
    const floor = floors.length === 0 ? undefined : Math.max(...floors)
    const next: Owner = {
      instanceId: known?.instanceId ?? succession?.instanceId ?? randomUUID(),
      ...(floor !== undefined && { floor }),
      owner,
      keyId: seal.keyId,
      process: randomUUID(),
    }
    const { succeeded, header } = await client.txn({
      compare: [{ key: keys.owner, target: 2, modRevision: kv?.modRevision ?? 0 }],
      success: [{ requestPut: { key: keys.owner, value: Buffer.from(JSON.stringify(next)) } }],
      failure: [],
    })
    if (succeeded) return { owner: next, revision: header.revision }
  }
}

function readOwner(kv: KeyValue, prefix: string): Owner {
  try {
    const found = parseJsonText(kv.value.toString()) as unknown as Owner
    if (typeof found.instanceId === 'string' && typeof found.owner === 'string') return found
  } catch {
    // Said below.
  }
  throw new StoreError('Unavailable', `what is below ${prefix} in etcd was not written by kcp: choose another prefix`)
}

async function requireEmpty(client: EtcdClient, keys: EtcdKeys, prefix: string): Promise<void> {
  const { kvs } = await client.range({ key: keys.all.start, rangeEnd: keys.all.end, limit: 1, keysOnly: true })
  if (kvs.length > 0)
    throw new StoreError(
      'Unavailable',
      `the key ${keys.owner.toString()} is missing in etcd: restore it, or choose another prefix than ${prefix}`,
    )
}

/**
 * Calls `take` with the keys of the range, at one revision, which is returned. `limit`: of keys for which `take` returns
 * true.
 */
async function scan(
  client: EtcdClient,
  { range, keysOnly = false, limit = Infinity }: { range: KeyRange; keysOnly?: boolean; limit?: number },
  take: (kv: KeyValue) => boolean,
  at?: number,
): Promise<number> {
  let revision = at
  let key = range.start
  for (let left = limit; ;) {
    const page: RangeRequest = {
      key,
      rangeEnd: range.end,
      limit: Math.min(left, keysOnly ? pageSize * 20 : pageSize),
      keysOnly,
      ...(revision !== undefined && { revision }),
    }
    const { kvs, more, header } = await client.range(page)
    revision ??= header.revision
    for (const kv of kvs) if (take(kv)) left -= 1
    const last = kvs.at(-1)
    if (!more || left <= 0 || last === undefined) return revision
    key = Buffer.concat([last.key, Buffer.from([0])])
  }
}

interface Parts {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly seal: Seal
  readonly log: EventLog
  readonly resources: ClustersByResource
  readonly options: EtcdStoreOptions
  readonly owner: Owner
  readonly ownerRevision: number
  readonly onProblem: (message: string, error: unknown) => void
}

interface Done {
  readonly revision: Revision
  readonly createRevision: Revision
}

/** A write that etcd has been asked for. */
interface Writing {
  readonly key: ObjectKey
  readonly etcdKey: Buffer
  readonly ops: readonly RequestOp[]
  /** Revision that the object must have; 0: there must be none. */
  readonly ifRevision: number
  /** What is written; absent in a deletion. */
  readonly value?: Uint8Array
  /** What the watch has told of this write. */
  done?: Done | undefined
}

class EtcdStore implements Store {
  readonly maxValueBytes: number
  readonly instanceId: string
  readonly #parts: Parts
  readonly #life = new AbortController()
  readonly #stream: EventStream
  /** Writes under way, by the text of their keys. */
  readonly #writing = new Map<string, Set<Writing>>()
  #waiting = 0
  #running: Promise<unknown> | undefined

  constructor(parts: Parts) {
    const { client, keys, log, resources, options, owner, onProblem } = parts
    this.#parts = parts
    this.maxValueBytes = options.maxValueBytes ?? etcdRequestBytes - requestOverheadBytes
    this.instanceId = owner.instanceId
    this.#stream = new EventStream({
      client,
      range: keys.all,
      log,
      read: (event) => this.#change(event),
      seen: (change) => {
        if (change.type === 'delete') resources.remove(change.key)
        else if (change.object.revision === change.object.createRevision) resources.add(change.object.key)
        for (const write of this.#writing.get(keyTextOf(keyOf(change))) ?? []) write.done ??= doneBy(change, write)
      },
      onProblem,
      signal: this.#life.signal,
    })
  }

  start(): void {
    this.#running = Promise.all([this.#stream.run(), this.#compact()])
  }

  async get(key: ObjectKey, { signal }: Waiting): Promise<StoredObject | undefined> {
    const { client, keys } = this.#parts
    return await this.#read(signal, async () => {
      const { kvs } = await client.range({ key: keys.key(key) })
      const [kv] = kvs
      return kv && this.#object(key, kv)
    })
  }

  async list(scope: ListScope, options: Waiting & { limit?: number; after?: ObjectKey }): Promise<ListResult> {
    return await this.#read(options.signal, () => this.#list(scope, options))
  }

  async create(key: ObjectKey, value: Uint8Array, { signal, above }: Creating): Promise<StoredObject> {
    const stored = this.#toStore(key, value)
    if (above !== undefined) await this.raise(above, signal, maxRaised)
    const revision = await this.#write(signal, this.#put(key, { value, stored }, 0))
    return { key, revision, createRevision: revision, value }
  }

  async update(key: ObjectKey, value: Uint8Array, { signal, ifRevision }: Updating): Promise<StoredObject> {
    const stored = this.#toStore(key, value)
    let createRevision = 0
    const revision = await this.#write(
      signal,
      this.#put(key, { value, stored }, ifRevision),
      (found) => (createRevision = found),
    )
    return { key, revision, createRevision: createRevision as Revision, value }
  }

  async delete(key: ObjectKey, { signal, ifRevision }: Waiting & { ifRevision: Revision }): Promise<Revision> {
    const etcdKey = this.#parts.keys.key(key)
    return await this.#write(signal, { key, etcdKey, ops: [{ requestDeleteRange: { key: etcdKey } }], ifRevision })
  }

  async deleteCluster(cluster: ClusterId, { signal }: Waiting): Promise<void> {
    const { client, keys } = this.#parts
    const range = keys.range({ cluster })
    for (;;) {
      signal.throwIfAborted()
      const found: { key: ObjectKey; revision: Revision }[] = []
      await this.#read(signal, () =>
        scan(client, { range, keysOnly: true, limit: pageSize }, ({ key, modRevision }) => {
          const parsed = keys.parse(key)
          if (parsed !== undefined) found.push({ key: parsed, revision: modRevision as Revision })
          return parsed !== undefined
        }),
      )
      if (found.length === 0) return
      while (found.length > 0)
        await Promise.all(
          found.splice(0, deletesAtATime).map(async ({ key, revision }) => {
            try {
              await this.delete(key, { signal, ifRevision: revision })
            } catch (error) {
              // It has changed or gone since it was listed: the next round has it as it is.
              if (!isStoreError(error) || !['KeyMissing', 'RevisionMismatch'].includes(error.code)) throw error
            }
          }),
        )
    }
  }

  watch({ since, signal }: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]> {
    const { log, keys } = this.#parts
    return watchLog(log, { since, signal }, (until) => this.#history(keys.all, { since, until }, signal))
  }

  async changes(
    { cluster, resource }: { cluster?: ClusterId; resource: string },
    { signal, since }: Waiting & { since: Revision },
  ): Promise<readonly StoreEvent[]> {
    const { keys } = this.#parts
    const range = keys.range(cluster === undefined ? {} : { cluster, resource })
    const until = await this.revision({ signal })
    if (since >= until) return []
    const all = await this.#history(range, { since, until }, signal)
    return lastStates(
      all.filter((change) => keyOf(change).resource === resource),
      since,
    )
  }

  async revision({ signal }: Waiting): Promise<Revision> {
    const { client, keys, log } = this.#parts
    return await this.#read(signal, async () => {
      const { header } = await client.range({ key: keys.owner, keysOnly: true })
      await this.#stream.reached(header.revision)
      return log.revision
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort()
    this.#stream.fail(closedStore())
    await this.#running
    this.#parts.client[Symbol.dispose]()
  }

  async #list(
    scope: ListScope,
    { limit = Infinity, after, signal }: Waiting & { limit?: number; after?: ObjectKey },
  ): Promise<ListResult> {
    const { client, keys, resources } = this.#parts
    const { cluster, resource, containing } = scope
    const items: StoredObject[] = []
    let next: ObjectKey | undefined
    let revision: number | undefined
    if (cluster === undefined && resource !== undefined) {
      // The table of resources is as new as the events that were delivered.
      revision = (await client.range({ key: keys.owner, keysOnly: true })).header.revision
      await this.#stream.reached(revision)
    }
    const ranges =
      cluster !== undefined || resource === undefined
        ? [keys.range(scope)]
        : resources.clustersOf(resource).map((one) => keys.range({ ...scope, cluster: one }))
    for (const range of ranges) {
      const start = after === undefined ? range.start : later(range.start, keys.after(keys.key(after)))
      if (Buffer.compare(start, range.end) >= 0) continue
      const wanted = limit - items.length + 1
      const at = await scan(
        client,
        { range: { start, end: range.end }, limit: wanted },
        (kv) => {
          signal.throwIfAborted()
          const key = keys.parse(kv.key)
          const object = key && this.#readable(key, kv)
          if (object === undefined || !containsAny(object.value, containing)) return false
          if (items.length < limit) items.push(object)
          else next = items.at(-1)?.key
          return true
        },
        revision,
      )
      revision ??= at
      if (next !== undefined) break
    }
    revision ??= (await client.range({ key: keys.owner, keysOnly: true })).header.revision
    await this.#stream.reached(revision)
    return { items, revision: revision as Revision, ...(next !== undefined && { next }) }
  }

  /** The changes of the range in (since, until], oldest first. */
  async #history(
    range: KeyRange,
    { since, until }: { since: number; until: number },
    signal: AbortSignal,
  ): Promise<readonly Change[]> {
    const { client, owner } = this.#parts
    if (since < (owner.floor ?? 0)) throw compacted('the changes since then were in another store')
    const log = new EventLog()
    log.start(since as Revision)
    const changes: Change[] = []
    let bytes = 0
    using life = ended(AbortSignal.any([signal, this.#life.signal]))
    const failed = Promise.withResolvers<never>()
    failed.promise.catch(() => undefined)
    const stream = new EventStream({
      client,
      range,
      log,
      read: (event) => this.#change(event),
      seen: (change) => {
        if (revisionOf(change) > until || bytes > maxChangedBytes) return
        changes.push(change)
        bytes += sizeOf(change)
        if (changes.length > maxChanges || bytes > maxChangedBytes)
          failed.reject(compacted('there are too many changes since then'))
      },
      onProblem: this.#parts.onProblem,
      signal: life.signal,
    })
    void stream.run()
    try {
      await Promise.race([stream.reached(until), failed.promise])
      return changes
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  }

  /** `stored`: the value at rest. */
  #put(
    key: ObjectKey,
    { value, stored }: { readonly value: Uint8Array; readonly stored: Uint8Array },
    ifRevision: number,
  ): Writing {
    const etcdKey = this.#parts.keys.key(key)
    // The second step tells the revision of the creation.
    const ops = [{ requestPut: { key: etcdKey, value: stored } }, { requestRange: { key: etcdKey, keysOnly: true } }]
    return { key, etcdKey, ops, ifRevision, value }
  }

  /** Returns the revision of the write, after its event was delivered. */
  async #write(
    signal: AbortSignal,
    write: Writing,
    created: (revision: number) => void = () => undefined,
  ): Promise<Revision> {
    signal.throwIfAborted()
    if (this.#life.signal.aborted) throw closedStore()
    const { mayWriteForMs } = this.#parts.options
    if (mayWriteForMs !== undefined && mayWriteForMs(write.key.cluster) < minWriteMs)
      throw new StoreError('Unavailable', 'this process may not write to the logical cluster now')
    if (this.#waiting >= maxWaiting) throw new StoreError('Busy', 'too many writes wait for etcd: try again later')
    this.#waiting += 1
    const text = keyTextOf(write.key)
    const others = this.#writing.get(text) ?? new Set()
    this.#writing.set(text, others.add(write))
    const done = this.#attempt(write, created).finally(() => {
      this.#waiting -= 1
      others.delete(write)
      if (others.size === 0) this.#writing.delete(text)
    })
    done.catch(() => undefined)
    return await abortable(done, signal)
  }

  async #attempt(write: Writing, created: (revision: number) => void): Promise<Revision> {
    const { client, keys, ownerRevision } = this.#parts
    const { key, etcdKey, ifRevision, ops } = write
    const expected: Compare =
      ifRevision === 0
        ? { key: etcdKey, target: 1, createRevision: 0 }
        : { key: etcdKey, target: 2, modRevision: ifRevision }
    const isOurs: Compare = { key: keys.owner, target: 2, modRevision: ownerRevision }
    const failure = [
      { requestRange: { key: keys.owner, keysOnly: true } },
      { requestRange: { key: etcdKey, keysOnly: true } },
    ]
    const request = { compare: [expected, isOurs], success: ops, failure }
    const leftMs = this.#parts.options.mayWriteForMs?.(key.cluster) ?? Infinity
    const deadline = performance.now() + Math.min(askAfterMs, leftMs)
    for (let isRepeated = false; ; isRepeated = true) {
      let answer: TxnResponse
      try {
        answer = await client.txn(request, leftMs)
      } catch (error) {
        if (!isOutage(error)) throw asStoreError(error)
        if (!(await this.#untilBack(deadline))) throw unknownOutcome(key, error)
        if (write.done === undefined) continue
        created(write.done.createRevision)
        return write.done.revision
      }
      const { revision } = answer.header
      await this.#stream.reached(revision)
      if (answer.succeeded) {
        created(answer.responses[1]?.responseRange?.kvs[0]?.createRevision ?? revision)
        return revision as Revision
      }
      if (!isRepeated || write.done === undefined) throw this.#refusal(answer, key, ifRevision)
      created(write.done.createRevision)
      return write.done.revision
    }
  }

  #refusal({ responses }: TxnResponse, key: ObjectKey, ifRevision: number): StoreError {
    const [owner, found] = responses.map(({ responseRange }) => responseRange?.kvs[0])
    if (owner?.modRevision !== this.#parts.ownerRevision) {
      const error = new StoreError(
        'Unavailable',
        'a newer process of this installation has taken over its data in etcd',
      )
      this.#stream.fail(error)
      return error
    }
    const what = `"${key.resource}/${key.name}"`
    if (ifRevision === 0) return new StoreError('KeyExists', `${what} exists`)
    if (found === undefined) return new StoreError('KeyMissing', `${what} does not exist`)
    return new StoreError('RevisionMismatch', `${what} is at revision ${found.modRevision}, not ${ifRevision}`)
  }

  /** Resolves when etcd answers again and all that it has done until then was delivered; false if this takes too long. */
  async #untilBack(deadline: number): Promise<boolean> {
    const { client, keys } = this.#parts
    while (performance.now() < deadline && !this.#life.signal.aborted) {
      try {
        const { header } = await client.range({ key: keys.owner, keysOnly: true })
        await this.#stream.reached(header.revision)
        return true
      } catch (error) {
        if (!isOutage(error)) throw asStoreError(error)
        await sleep(retryMs)
      }
    }
    return false
  }

  /** Runs a question to etcd; the errors are those of a Store. */
  async #read<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#life.signal.aborted) throw closedStore()
    const answer = (async () => {
      const deadline = performance.now() + askAfterMs
      for (;;) {
        try {
          return await ask()
        } catch (error) {
          // Another endpoint may answer.
          if (!isOutage(error) || performance.now() > deadline || this.#life.signal.aborted) throw asStoreError(error)
          await sleep(retryMs)
        }
      }
    })()
    answer.catch(() => undefined)
    return await abortable(answer, signal)
  }

  /** Makes etcd count up to the revision, unless more than `most` are missing: each write makes one revision. */
  async raise(above: Revision, signal: AbortSignal, most = Infinity): Promise<void> {
    const { client, keys } = this.#parts
    const value = Buffer.alloc(0)
    const write = { compare: [], success: [{ requestPut: { key: keys.raised, value } }], failure: [] }
    let now = await this.#read(
      signal,
      async () => (await client.range({ key: keys.owner, keysOnly: true })).header.revision,
    )
    if (above - now > most) return
    while (now < above) {
      const count = Math.min(raisedAtATime, above - now)
      const answers = Array.from({ length: count }, () => this.#read(signal, () => client.txn(write)))
      for (const { header } of await Promise.all(answers)) now = Math.max(now, header.revision)
    }
  }

  #toStore(key: ObjectKey, value: Uint8Array): Uint8Array {
    return atRest(key, value, { seal: this.#parts.seal, most: this.maxValueBytes })
  }

  #opened(key: ObjectKey, stored: Uint8Array): Uint8Array {
    return openedValue(this.#parts.seal, key, stored)
  }

  #object(key: ObjectKey, { modRevision, createRevision, value }: KeyValue): StoredObject {
    return {
      key,
      revision: modRevision as Revision,
      createRevision: createRevision as Revision,
      // A view of etcd's answer would keep all of it in memory.
      value: this.#opened(key, Uint8Array.prototype.slice.call(value)),
    }
  }

  /** Undefined if the value cannot be read, which is reported: one damaged value must not affect the others. */
  #readable(key: ObjectKey, kv: KeyValue): StoredObject | undefined {
    try {
      return this.#object(key, kv)
    } catch (error) {
      this.#parts.onProblem('an object in etcd cannot be read and is left out', error)
      return undefined
    }
  }

  #change({ type, kv, prevKv }: WatchEvent): Change | undefined {
    const key = this.#parts.keys.parse(kv.key)
    if (key === undefined) return undefined
    const revision = kv.modRevision as Revision
    if (type === 0) {
      const object = this.#readable(key, kv)
      return object && { type: 'put', object }
    }
    const previous = prevKv === null ? undefined : this.#readable(key, prevKv)
    return { type: 'delete', key, revision, ...(previous && { previous }) }
  }

  /** Drops history that is older than `historyMs`, as kube-apiserver does. */
  async #compact(): Promise<void> {
    const { client, keys, onProblem, options } = this.#parts
    const { historyMs = defaultHistoryMs } = options
    if (historyMs === 0) return
    const { signal } = this.#life
    let old = 0
    while (!signal.aborted) {
      try {
        const { header } = await client.range({ key: keys.owner, keysOnly: true })
        if (old > 0) await client.compact(old)
        old = header.revision
      } catch (error) {
        // Another process may have dropped more.
        const isDone = isServiceError(error) && error.code === status.OUT_OF_RANGE
        if (isDone) old = 0
        else onProblem('old history of etcd was not dropped', error)
      }
      await sleep(historyMs, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** A signal that ends with another, and with its disposal. */
function ended(outer: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const life = new AbortController()
  return { signal: AbortSignal.any([outer, life.signal]), [Symbol.dispose]: () => life.abort() }
}

/**
 * The write as the change shows it; undefined if the change is another's. An object is written with its uid and its
 * owners of fields, so no other write has the same bytes; a deletion is known by what it deletes.
 */
function doneBy(change: Change, { value, ifRevision }: Writing): Done | undefined {
  if (change.type === 'delete') {
    const { revision, previous } = change
    const isThis = value === undefined && (previous?.revision ?? ifRevision) === ifRevision && revision > ifRevision
    return isThis ? { revision, createRevision: previous?.createRevision ?? revision } : undefined
  }
  const { object } = change
  const isThis = value !== undefined && object.revision > ifRevision && Buffer.compare(object.value, value) === 0
  return isThis ? object : undefined
}

function unknownOutcome({ resource, name }: ObjectKey, cause: unknown): StoreError {
  return new StoreError('Unavailable', `etcd did not say whether "${resource}/${name}" was written`, { cause })
}

function compacted(why: string): StoreError {
  return new StoreError('Compacted', why)
}

/** The error of a Store for an error of etcd. */
function asStoreError(error: unknown): unknown {
  if (!isServiceError(error)) return error
  const { code, details } = error
  if (code === status.RESOURCE_EXHAUSTED && details.includes('space exceeded'))
    return new StoreError('Full', `etcd has no space left: ${details}`, { cause: error })
  if (code === status.RESOURCE_EXHAUSTED)
    return new StoreError('Busy', `etcd has too much to do: ${details}`, { cause: error })
  if (details.includes('request is too large'))
    return new StoreError('TooLarge', 'the object is larger than etcd takes (its flag --max-request-bytes)', {
      cause: error,
    })
  if (code === status.OUT_OF_RANGE) return compacted(details)
  return new StoreError('Unavailable', `etcd: ${details || error.message}`, { cause: error })
}

function later(a: Buffer, b: Buffer): Buffer {
  return Buffer.compare(a, b) > 0 ? a : b
}
