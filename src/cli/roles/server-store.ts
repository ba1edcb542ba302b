// The store of a role in an etcd or a PostgreSQL of the user's, as its flags say.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Seal, Store, Succession } from '#store/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface EtcdSettings {
  readonly kind: 'etcd'
  readonly urls: readonly string[]
  readonly prefix: string
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
  readonly user?: { readonly name: string; readonly passwordFile: string }
  /** Milliseconds of history that is kept; 0: it is never dropped. */
  readonly historyMs: number
}

export interface PostgresSettings {
  readonly kind: 'postgres'
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly database: string
  readonly schema: string
  readonly user: string
  readonly passwordFile?: string
  readonly tls: boolean
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
  /** Milliseconds of history that is kept. */
  readonly historyMs: number
}

export type ServerStoreSettings = EtcdSettings | PostgresSettings

interface Opening {
  readonly seal: Seal
  /** For a place without data. */
  readonly succession?: Succession
  /** True: a place without data is refused. */
  readonly mustExist?: boolean
  /** Called when an object cannot be read, and on similar problems. Default: the log tells it. */
  readonly onProblem?: (message: string, error: unknown) => void
  /** As in the options of both stores. */
  readonly mayWriteForMs?: (cluster: ClusterId) => number
  /** PEM of the installation's authority for clients: it says whose data these are. */
  readonly authority: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Where the data are, for messages, such as `in etcd below /kcp`. */
export function placeOf(settings: ServerStoreSettings): string {
  return settings.kind === 'etcd' ? `in etcd below ${settings.prefix}` : `in PostgreSQL in schema ${settings.schema}`
}

/** Opens the store. Rejects ExitError with what to do if a file or the server cannot be used. */
export async function openServerStore(
  settings: ServerStoreSettings,
  { authority, seal, mayWriteForMs, succession, mustExist = false, onProblem, log, signal }: Opening,
): Promise<Store> {
  const { caFile, certFile, keyFile, historyMs } = settings
  const [ca, cert, key] = await Promise.all([caFile, certFile, keyFile].map(contentOf))
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  const common = {
    owner: `the installation ${createHash('sha256').update(authority).digest('hex').slice(0, 16)}`,
    ...{ seal, historyMs, mustExist, signal },
    ...(mayWriteForMs && { mayWriteForMs }),
    ...(succession && { succession }),
    onProblem: onProblem ?? ((message: string, error: unknown) => log.warn(message, { error })),
  }
  try {
    // Both are loaded late: other installations need neither gRPC nor a driver.
    if (settings.kind === 'etcd') {
      const { urls, prefix, user } = settings
      const password = (await contentOf(user?.passwordFile))?.toString().trimEnd() ?? ''
      const { openEtcdStore } = await import('#store/etcd/index.ts')
      const endpoints = { urls, ...tls, ...(user && { user: { name: user.name, password } }) }
      return await openEtcdStore({ endpoints, prefix, ...common })
    }
    const { hosts, database, schema, user, passwordFile } = settings
    await contentOf(passwordFile)
    const { openPostgresStore } = await import('#store/postgres/index.ts')
    const servers = { hosts, database, user, ...(passwordFile && { passwordFile }), tls: settings.tls && tls }
    return await openPostgresStore({ servers, schema, ...common })
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof ExitError ? error : new ExitError(messageOf(error), { cause: error })
  }
}

async function contentOf(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  return await readFile(file).catch((error: unknown) => {
    throw new ExitError(`cannot read ${file}: ${messageOf(error)}`)
  })
}
