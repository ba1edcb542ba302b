// Connections to the primary of a PostgreSQL: the next server of the list after a failure.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, DatabaseError, Pool, type ClientConfig, type PoolClient, type QueryConfig } from 'pg'
import { StoreError } from '#store/store.ts'

export interface PostgresServers {
  /** All are servers of one cluster; the one that is the primary is used. A host may be the folder of a socket. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly database: string
  readonly user: string
  /** Read for each connection, so that a password can be changed without a restart. */
  readonly passwordFile?: string
  /** False: no TLS. Certificates of servers are always checked, with the name of the host. */
  readonly tls: false | { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer }
}

export interface Row {
  readonly [column: string]: unknown
}

/** Runs statements in one connection. */
export interface Session {
  rows<T extends Row>(query: QueryConfig): Promise<readonly T[]>
}

/** `own`: the writes and the stream of changes of this process. */
type Purpose = 'questions' | 'own'

interface SessionOptions {
  /** Time that one statement may take. */
  readonly ms?: number
  readonly purpose?: Purpose
}

interface ServersOptions {
  readonly servers: PostgresServers
  /** Called with each new connection before it is used; rejects if this server must not be used. */
  readonly check: (session: Session) => Promise<void>
}

const connectMs = 5000
/** Time that one statement may take, milliseconds. */
const statementMs = 10_000
/** Connections for questions; a list may hold one for long, so writes and the stream of changes have their own. */
const maxConnections = { questions: 6, own: 2 } as const
const idleMs = 60_000
const endMs = 1000
const oldestVersion = 16

/** By the object ids of types in PostgreSQL; all others are texts. The driver reads no binary results. */
const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  20: Number,
  23: Number,
}
const types: QueryConfig['types'] = { getTypeParser: (oid: number) => parsers[oid] ?? String }

export class Servers implements AsyncDisposable {
  readonly #options: ServersOptions
  #at = 0
  #pools: Readonly<Record<Purpose, Pool>> | undefined
  #isClosed = false

  constructor(options: ServersOptions) {
    this.#options = options
  }

  /** The rows of one statement. `ms`: it is given up after so long, though the server may still do it. */
  async rows<T extends Row>(query: QueryConfig, options: SessionOptions = {}): Promise<readonly T[]> {
    return await this.session((session) => session.rows<T>(query), options)
  }

  /** Runs `work` in one connection. Rejects Outage, or the error of `work`. */
  async session<T>(
    work: (session: Session) => Promise<T>,
    { ms = statementMs, purpose = 'questions' }: SessionOptions = {},
  ): Promise<T> {
    const pools = this.#current()
    let client: PoolClient | undefined
    try {
      client = await connected(pools[purpose], maxConnections[purpose])
      const done = await work(sessionOf(client, ms))
      client.release()
      return done
    } catch (error) {
      // A refusal leaves the connection usable, unless a transaction is open in it.
      client?.release(true)
      if (isOutage(error) && pools === this.#pools) this.#leave()
      throw error
    }
  }

  /** Calls `heard` when the channel is notified, until `signal` aborts or the connection breaks. */
  async listen(channel: string, { heard, signal }: { heard: () => void; signal: AbortSignal }): Promise<void> {
    const client = new Client(await this.#config())
    const broken = Promise.withResolvers<undefined>()
    client.on('error', (error) => broken.reject(error))
    client.on('end', () => broken.resolve(undefined))
    const abort = (): void => broken.resolve(undefined)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    broken.promise.catch(() => undefined)
    try {
      await client.connect()
      client.on('notification', heard)
      await client.query({ ...{ text: `LISTEN ${channel}` }, query_timeout: connectMs } as QueryConfig)
      heard()
      await broken.promise
    } finally {
      signal.removeEventListener('abort', abort)
      // A silent server would not confirm the end.
      await Promise.race([client.end().catch(() => undefined), sleep(endMs)])
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all(Object.values(this.#pools ?? {}).map((pool) => pool.end()))
  }

  #leave(): void {
    const pools = this.#pools
    this.#pools = undefined
    this.#at = (this.#at + 1) % this.#options.servers.hosts.length
    for (const pool of Object.values(pools ?? {})) pool.end().catch(() => undefined)
  }

  #current(): Readonly<Record<Purpose, Pool>> {
    if (this.#isClosed) throw new StoreError('Closed', 'the store is closed')
    this.#pools ??= { questions: this.#pool('questions'), own: this.#pool('own') }
    return this.#pools
  }

  #pool(purpose: Purpose): Pool {
    const pool = new Pool({
      ...this.#address(this.#at),
      password: () => this.#password(),
      max: maxConnections[purpose],
      idleTimeoutMillis: idleMs,
      verify: (client, done) => {
        this.#verify(client).then(
          () => done(),
          (error: unknown) => done(error as Error),
        )
      },
    })
    // A connection that breaks is noticed by its statement or the next one; without listeners the process would end.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
    return pool
  }

  async #verify(client: PoolClient): Promise<void> {
    const session = sessionOf(client, connectMs)
    const [found] = await session.rows<{ standby: boolean; version: number }>({
      text: `SELECT pg_is_in_recovery() AS standby, current_setting('server_version_num')::integer AS version,
        set_config('statement_timeout', '30s', false),
        CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END`,
    })
    if (found === undefined || found.standby) throw new Outage('the server is a standby')
    const version = Math.floor(found.version / 10_000)
    if (version < oldestVersion)
      throw new StoreError('Unavailable', `PostgreSQL is ${version}: update it to ${oldestVersion} or newer`)
    await this.#options.check(session)
  }

  async #config(): Promise<ClientConfig> {
    const password = await this.#password()
    return { ...this.#address(this.#at), ...(password !== '' && { password }) }
  }

  #address(at: number): ClientConfig {
    const { hosts, database, user, tls } = this.#options.servers
    const { host, port } = hosts[at] ?? { host: 'localhost', port: 5432 }
    return {
      ...{ host, port, database, user, application_name: 'kcp', keepAlive: true, keepAliveInitialDelayMillis: 10_000 },
      connectionTimeoutMillis: connectMs,
      ssl: tls === false ? false : { ...tls, rejectUnauthorized: true },
    }
  }

  async #password(): Promise<string> {
    const { passwordFile } = this.#options.servers
    return passwordFile === undefined ? '' : (await readFile(passwordFile, 'utf8')).trimEnd()
  }
}

/** A server that cannot be used now, or did not answer; another one may be. */
export class Outage extends Error {}

/** A connection of the pool. Rejects Outage, or StoreError Busy if all are in use for too long. */
async function connected(pool: Pool, most: number): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    if (error instanceof StoreError || error instanceof DatabaseError) throw error
    if (!pool.ending && pool.totalCount >= most && pool.idleCount === 0)
      throw new StoreError('Busy', 'too many questions wait for PostgreSQL: try again later')
    throw asOutage(error)
  }
}

function sessionOf(client: PoolClient, ms: number): Session {
  return {
    rows: async <T extends Row>(query: QueryConfig) => {
      const config = { ...query, types, query_timeout: ms }
      try {
        return (await client.query<T>(config)).rows
      } catch (error) {
        throw error instanceof DatabaseError ? error : asOutage(error)
      }
    },
  }
}

function asOutage(error: unknown): Outage {
  if (error instanceof Outage) return error
  return new Outage(error instanceof Error ? error.message : String(error), { cause: error })
}

/** Whether the server could not be reached, is not the primary, or did not answer: a write may have been done all the same. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return error instanceof Outage
  const code = sqlState(error)
  return /^(08|57P|XX)/.test(code) || ['25006', '53300', '57014', '55P03', '40001', '40P01'].includes(code)
}

/** The SQLSTATE of an error of the server; empty for others. */
export function sqlState(error: unknown): string {
  return error instanceof DatabaseError ? (error.code ?? '') : ''
}

/** The error of a Store for an error of PostgreSQL. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const code = sqlState(error)
  const cause = { cause: error }
  if (code === '53100') return new StoreError('Full', `PostgreSQL has no space left: ${error.message}`, cause)
  if (code === '53200') return new StoreError('Busy', `PostgreSQL has no memory left: ${error.message}`, cause)
  return new StoreError('Unavailable', `PostgreSQL: ${error.message || code || String(error)}`, cause)
}
