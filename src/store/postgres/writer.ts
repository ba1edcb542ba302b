// Writes: collected while a batch is under way, and sent until the server says what became of them.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { abortable } from '#async/index.ts'
import type { Change } from '#store/event-log.ts'
import { StoreError, type ObjectKey, type StoredObject } from '#store/store.ts'
import type { EventStream } from './event-stream.ts'
import { objects, type Owner } from './installation.ts'
import { batchRefusals, refusals, writeKinds } from './schema.ts'
import { asStoreError, isOutage, sqlState, type Row, type Servers, type Session } from './servers.ts'

/** Writes of one batch, and bytes of their values: one write may exceed these bytes. */
const [batchWrites, batchBytes] = [256, 4 * 1024 * 1024]
const [maxWaiting, maxWaitingBytes] = [4096, 256 * 1024 * 1024]
/** For so long a batch whose outcome is not known is sent again. */
const askAfterMs = 10_000
const attemptMs = 5000
const retryMs = 100
/** PostgreSQL has no index entries above 2,704 bytes. */
const maxKeyBytes = 2500
/** A write is not begun if the process may write for less than this, milliseconds. */
const minWriteMs = 100

export interface Written {
  readonly revision: Revision
  readonly createRevision: Revision
}

interface Writing {
  readonly kind: keyof typeof writeKinds
  readonly key: ObjectKey
  readonly keyBytes: Buffer
  /** As the reader gives it; absent in a deletion. */
  readonly value?: Uint8Array
  /** At rest. */
  readonly stored?: Uint8Array
  readonly ifRevision: number
  readonly above: number
  readonly resolve: (written: Written) => void
  readonly reject: (error: unknown) => void
}

interface BatchRow extends Row {
  readonly o_before: number
  readonly o_revision: number
  readonly o_created: number
  readonly o_refusal: number
  readonly o_found: number
  readonly o_previous: Buffer | null
}

interface WriterOptions {
  readonly servers: Servers
  readonly schema: string
  readonly owner: Owner
  readonly stream: EventStream
  /** As in PostgresStoreOptions. */
  readonly mayWriteForMs: ((cluster: ClusterId) => number) | undefined
  /** The object of a row; undefined if its value cannot be read. */
  readonly readable: (key: ObjectKey, row: StoredRow) => StoredObject | undefined
}

/** An object as a row has it. */
export interface StoredRow {
  readonly revision: number
  readonly created: number
  readonly value: Buffer | null
}

export class Writer {
  readonly #options: WriterOptions
  #queue: Writing[] = []
  #waiting = 0
  #waitingBytes = 0
  #batch = 0
  #writing: Promise<void> | undefined
  #closed: StoreError | undefined

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /** Refuses what waits and what comes; resolves after the batch that is under way. */
  async close(error: StoreError): Promise<void> {
    this.#closed = error
    for (const { reject } of this.#queue.splice(0)) reject(error)
    await this.#writing
  }

  /** Queues a write. Resolves after its change was delivered. */
  async write(
    signal: AbortSignal,
    write: Pick<Writing, 'kind' | 'key' | 'value' | 'stored' | 'ifRevision' | 'above'>,
  ): Promise<Written> {
    const { key, stored } = write
    const keyBytes = objects.key(key)
    if (keyBytes.length > maxKeyBytes)
      throw new StoreError(
        'TooLarge',
        `the name of the object has ${key.name.length} characters, too many for PostgreSQL`,
      )
    signal.throwIfAborted()
    if (this.#closed) throw this.#closed
    this.#requireRight(key)
    if (this.#waiting >= maxWaiting || this.#waitingBytes > maxWaitingBytes)
      throw new StoreError('Busy', 'too many writes wait for PostgreSQL: try again later')
    const bytes = stored?.length ?? 0
    this.#waiting += 1
    this.#waitingBytes += bytes
    const done = new Promise<Written>((resolve, reject) => {
      this.#queue.push({ ...write, keyBytes, resolve, reject })
    }).finally(() => {
      this.#waiting -= 1
      this.#waitingBytes -= bytes
    })
    done.catch(() => undefined)
    this.#writing ??= this.#writeQueue()
    return await abortable(done, signal)
  }

  async #writeQueue(): Promise<void> {
    // Writes of the same turn of the event loop share a batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#queue.length > 0) {
      const batch = this.#nextBatch()
      try {
        await this.#do(batch)
      } catch (error) {
        if (batch.length > 1 && isRefusedStatement(error)) await this.#doEach(batch)
        else for (const { reject } of batch) reject(asStoreError(error))
      }
    }
    // In the same turn as the last look at the queue, so that no write is left in it.
    this.#writing = undefined
  }

  #nextBatch(): readonly Writing[] {
    let bytes = 0
    let count = 0
    for (const { stored } of this.#queue) {
      bytes += stored?.length ?? 0
      if (count > 0 && (bytes > batchBytes || count >= batchWrites)) break
      count += 1
    }
    return this.#queue.splice(0, count).filter(({ key, reject }) => {
      try {
        this.#requireRight(key)
        return true
      } catch (error) {
        reject(error)
        return false
      }
    })
  }

  /** After PostgreSQL has refused a batch: one of its writes is the cause, and must not stop the others. */
  async #doEach(batch: readonly Writing[]): Promise<void> {
    let outage: unknown
    for (const write of batch)
      if (outage === undefined)
        await this.#do([write]).catch((error: unknown) => {
          write.reject(asStoreError(error))
          // The others would each wait for the server in their turn.
          if (!isRefusedStatement(error)) outage = error
        })
      else write.reject(asStoreError(outage))
  }

  async #do(batch: readonly Writing[]): Promise<void> {
    if (batch.length === 0) return
    const { stream, readable } = this.#options
    const rows = await this.#send(batch)
    const changes: Change[] = []
    let before = 0
    for (const [at, row] of rows.entries()) {
      before = row.o_before
      const write = batch[at]
      if (write !== undefined && row.o_revision > 0) changes.push(changeOf(write, row, readable))
    }
    await stream.own(before, changes)
    for (const [at, write] of batch.entries()) {
      const row = rows[at]
      if (row === undefined) write.reject(new StoreError('Unavailable', 'PostgreSQL did not answer for this write'))
      else if (row.o_refusal === 0)
        write.resolve({ revision: row.o_revision as Revision, createRevision: row.o_created as Revision })
      else write.reject(refusal(write, row))
    }
  }

  /**
   * Sends a batch until the server says what became of it. A batch that was done is not done again. Rejects StoreError, or
   * the server's error if it has refused the statement.
   */
  async #send(batch: readonly Writing[]): Promise<readonly BatchRow[]> {
    const { servers, schema, owner, mayWriteForMs } = this.#options
    const leftMs = Math.min(...batch.map(({ key }) => mayWriteForMs?.(key.cluster) ?? Infinity))
    const deadline = performance.now() + Math.min(askAfterMs, leftMs)
    this.#batch += 1
    const number = this.#batch
    const values = batch.flatMap(({ stored }) => (stored === undefined ? [] : [stored]))
    const writes = [
      batch.map(({ kind }) => writeKinds[kind]),
      ...joined(batch.map(({ keyBytes }) => keyBytes)),
      ends(batch.map(({ stored }) => stored?.length ?? 0)),
      Buffer.concat(values),
      batch.map(({ ifRevision }) => ifRevision),
      batch.map(({ above }) => above),
    ]
    const send = (session: Session): Promise<readonly BatchRow[]> => {
      // To connect may have taken seconds.
      const withinMs = Math.floor(deadline - performance.now())
      if (withinMs <= 0) throw new StoreError('Unavailable', 'PostgreSQL could not be reached in time')
      return session.rows<BatchRow>({
        name: 'write',
        text: `SELECT * FROM ${schema}.${owner.writeBatch}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        values: [owner.process, number, withinMs, mayWriteForMs === undefined, channelOf(schema), ...writes],
      })
    }
    for (;;) {
      try {
        const ms = Math.max(1, Math.min(attemptMs, deadline - performance.now()))
        return await servers.session(send, { ms, purpose: 'own' })
      } catch (error) {
        const code = sqlState(error)
        if (code === batchRefusals.replaced) throw this.#replaced()
        if (code === batchRefusals.late || code === batchRefusals.outdated) throw unknownOutcome(error)
        if (!isOutage(error)) throw error
        if (performance.now() + retryMs > deadline || this.#closed) throw unknownOutcome(error)
        await sleep(retryMs)
      }
    }
  }

  #replaced(): StoreError {
    const error = new StoreError(
      'Unavailable',
      'a newer process of this installation has taken over its data in PostgreSQL',
    )
    this.#options.stream.fail(error)
    return error
  }

  #requireRight({ cluster }: ObjectKey): void {
    const { mayWriteForMs } = this.#options
    if (mayWriteForMs !== undefined && mayWriteForMs(cluster) < minWriteMs)
      throw new StoreError('Unavailable', 'this process may not write to the logical cluster now')
  }
}

/** Whether the server cannot do the statement with these values: it would refuse it again. */
function isRefusedStatement(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlState(error))
}

function changeOf(
  { key, value, ifRevision }: Writing,
  { o_revision, o_created, o_previous }: BatchRow,
  opened: WriterOptions['readable'],
): Change {
  const revision = o_revision as Revision
  const createRevision = o_created as Revision
  if (value !== undefined) return { type: 'put', object: { key, revision, createRevision, value } }
  const previous =
    o_previous === null ? undefined : opened(key, { revision: ifRevision, created: o_created, value: o_previous })
  return { type: 'delete', key, revision, ...(previous && { previous }) }
}

function refusal({ kind, key, ifRevision }: Writing, { o_refusal, o_found }: BatchRow): StoreError {
  const what = `"${key.resource}/${key.name}"`
  if (o_refusal === refusals.exists || kind === 'create') return new StoreError('KeyExists', `${what} exists`)
  if (o_refusal === refusals.missing) return new StoreError('KeyMissing', `${what} does not exist`)
  return new StoreError('RevisionMismatch', `${what} is at revision ${o_found}, not ${ifRevision}`)
}

/** Where each part ends, in the sum of all. */
function ends(lengths: readonly number[]): readonly number[] {
  let sum = 0
  return lengths.map((length) => (sum += length))
}

function joined(parts: readonly Buffer[]): readonly [readonly number[], Buffer] {
  return [ends(parts.map(({ length }) => length)), Buffer.concat(parts)]
}

/** Notified after each batch of an installation of several processes. */
export function channelOf(schema: string): string {
  return `kcp_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

function unknownOutcome(cause: unknown): StoreError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreError('Unavailable', `PostgreSQL did not say whether the object was written: ${why}`, { cause })
}
