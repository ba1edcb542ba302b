// The store of a role in an etcd, as its flags say.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { EtcdStoreOptions } from '#store/etcd/index.ts'
import type { Store } from '#store/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface EtcdSettings {
  readonly urls: readonly string[]
  readonly prefix: string
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
  readonly user?: { readonly name: string; readonly passwordFile: string }
  /** Milliseconds of history that is kept; 0: it is never dropped. */
  readonly historyMs: number
}

interface Opening extends Pick<EtcdStoreOptions, 'seal' | 'mayWriteForMs'> {
  /** PEM of the installation's authority for clients: it says whose data these are. */
  readonly authority: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Opens the store. Rejects ExitError with what to do if a file or etcd cannot be used. */
export async function openEtcd(
  { urls, prefix, caFile, certFile, keyFile, user, historyMs }: EtcdSettings,
  { authority, seal, mayWriteForMs, log, signal }: Opening,
): Promise<Store> {
  const [ca, cert, key, password] = await Promise.all([caFile, certFile, keyFile, user?.passwordFile].map(contentOf))
  const owner = `the installation ${createHash('sha256').update(authority).digest('hex').slice(0, 16)}`
  // Loaded late: nobody else pays for gRPC.
  const { openEtcdStore } = await import('#store/etcd/index.ts')
  try {
    return await openEtcdStore({
      endpoints: {
        urls,
        ...(ca && { ca }),
        ...(cert && { cert }),
        ...(key && { key }),
        ...(user && { user: { name: user.name, password: password?.toString().trimEnd() ?? '' } }),
      },
      prefix,
      owner,
      seal,
      ...(mayWriteForMs && { mayWriteForMs }),
      historyMs,
      onProblem: (message, error) => log.warn(message, { error }),
      signal,
    })
  } catch (error) {
    signal.throwIfAborted()
    throw new ExitError(messageOf(error), { cause: error })
  }
}

async function contentOf(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  return await readFile(file).catch((error: unknown) => {
    throw new ExitError(`cannot read ${file}: ${messageOf(error)}`)
  })
}
