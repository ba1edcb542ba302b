// One cluster on an embedded store, with the API and the controllers of a kube-apiserver alone.
import { join } from 'node:path'
import { rootClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { timestamp } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { startControllers } from '#controllers/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createMetrics, type Logger } from '#telemetry/index.ts'
import { createVirtualApi, openPki, rootCluster } from '#virtualapi/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface PlainServerOptions {
  /** The directory of the data. */
  readonly dir: string
  /** False: writes are acknowledged before they are on the disk, and a crash of the machine may lose them. */
  readonly isDurable: boolean
  readonly host: string
  readonly port: number
  /** The authority of client certificates, PEM. */
  readonly clientCa: string
  /** The certificate of the server, PEM. Default: one of our own authority in `dir`. */
  readonly serving?: { readonly certificate: string; readonly key: string }
  /** Names of admission plugins that do not run. */
  readonly withoutPlugins: readonly string[]
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface PlainServer extends AsyncDisposable {
  /** A client with all rights, from within the process. */
  readonly client: KubeClient
  readonly port: number
  /** The authority of the server's certificate if `serving` was not given, PEM. */
  readonly servingCa: string
  /** Rejects when the server failed for good. */
  readonly failed: Promise<never>
}

/** Starts the server; resolves once it is ready. Rejects with ExitError if the data or the port cannot be used. */
export async function startPlainServer(options: PlainServerOptions): Promise<PlainServer> {
  const { dir, isDurable, host, port, log, signal } = options
  await using stack = new AsyncDisposableStack()
  const asExit = (error: unknown): never => {
    throw new ExitError(messageOf(error), { cause: error })
  }
  const store = stack.use(await openSqliteStore({ file: join(dir, 'kcp.db'), isDurable }).catch(asExit))
  const pki = await openPki(dir)
  const api = stack.use(
    await createVirtualApi({
      store,
      pki,
      address: { host, port },
      root: rootCluster({ instanceId: store.instanceId, creationTimestamp: timestamp(Date.now()) }),
      plain: { clientCa: options.clientCa, withoutPlugins: options.withoutPlugins },
      // Webhooks of test suites listen on this machine, and all that runs here belongs to the suite.
      egress: { allow: ['0.0.0.0/0', '::/0'] },
      log,
      metrics: createMetrics(),
      signal,
    }),
  )
  stack.use(
    await startControllers({
      scope: 'apiserver',
      cluster: (name) => api.client(name as ClusterName, { userAgent: 'kube-apiserver' }),
      rootCa: pki.servingCa,
      signClientRequest: () => Promise.reject(new Error('no controller signs certificates')),
      graph: api.graph,
      log,
      signal,
    }),
  )
  const serving = options.serving ?? (await pki.servingCertificate([host]))
  const listener = stack.use(await api.listen({ host, port, ...serving }).catch(asExit))
  const owned = stack.move()
  return {
    port: listener.port,
    client: api.client(rootClusterName),
    servingCa: pki.servingCa,
    failed: api.broken,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
