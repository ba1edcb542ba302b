// `kcp/testing`: servers inside the process of a test.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKubeconfig, nameOfLogicalCluster, startEmbedded, startPlainServer, untilReady } from '#cli/index.ts'
import { createClient, httpTransport, kubeconfigText, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { createPkiMaterial, createPki, openPki } from '#virtualapi/index.ts'

export type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
export type { KubeClient } from '#client/index.ts'

/** How long a logical cluster may take to be ready, milliseconds. */
const readyWithinMs = 30_000
/** Validity of the credentials of tests. */
const days = 2

/** Access to one cluster. */
export interface TestCluster {
  /** A kubeconfig with all rights in the cluster, for kubectl and clients of any language. */
  readonly kubeconfig: string
  readonly client: KubeClient
}

/** A cluster of its own server. Disposal stops the server and deletes the data. */
export interface TestServer extends TestCluster, AsyncDisposable {}

/**
 * Starts the API server of one cluster, without controllers, on a free port of the loopback address: what envtest of
 * controller-runtime starts with upstream's programs.
 */
export async function startTestServer(): Promise<TestServer> {
  await using stack = new AsyncDisposableStack()
  const { dir, signal } = await openTemporary(stack)
  const pki = createPki(await createPkiMaterial())
  const server = stack.use(
    await startPlainServer({
      dir,
      isDurable: false,
      host: '127.0.0.1',
      port: 0,
      clientCa: pki.clientCa,
      withoutPlugins: ['ServiceAccount'],
      log: createLogger({ level: 'warn' }),
      signal,
    }),
  )
  const request = { commonName: 'admin', organizations: ['system:masters'], realm: 'installation', days } as const
  const { certificate: cert, key } = await pki.issueClientCertificate(request)
  const url = `https://127.0.0.1:${server.port}`
  const kubeconfig = kubeconfigText({ name: 'test', server: url, ca: server.servingCa, cert, key })
  const cluster = await clusterOf(kubeconfig, stack)
  const owned = stack.move()
  return { ...cluster, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** An installation with logical clusters. Disposal stops the server and deletes the data. */
export interface TestInstallation extends AsyncDisposable {
  /** A kubeconfig of the installation's admin, which leads into the logical cluster `root`. */
  readonly kubeconfig: string
  /** A client of the logical cluster `root`, which has the LogicalClusters, members and Placements. */
  readonly root: KubeClient
  /** Creates a logical cluster and waits until it is ready. */
  logicalCluster(name: string): Promise<TestCluster>
}

/** Starts all of kcp, as `kcp start` does, on a free port of the loopback address. */
export async function startTestInstallation(): Promise<TestInstallation> {
  await using stack = new AsyncDisposableStack()
  const { dir, signal } = await openTemporary(stack)
  const rootDir = join(dir, 'kcp')
  const kcp = stack.use(
    await startEmbedded({
      rootDir,
      port: 0,
      bindAddress: '127.0.0.1',
      advertiseAddress: '127.0.0.1',
      log: createLogger({ level: 'warn' }),
      signal,
    }),
  )
  const pki = await openPki(rootDir)
  const { kubeconfig, client: root } = await clusterOf(await readFile(kcp.adminKubeconfig, 'utf8'), stack)
  const owned = stack.move()
  return {
    kubeconfig,
    root,
    async logicalCluster(name) {
      const object: LogicalCluster = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      await root.create(logicalClusters, object, { signal })
      await untilReady(root, name, { signal, timeoutMs: readyWithinMs, everyMs: 20 })
      const installation = { clusters: root, pki, directUrl: `https://127.0.0.1:${kcp.port}` }
      return await clusterOf(await issueKubeconfig(installation, nameOfLogicalCluster(name), days, signal), owned)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

interface Temporary {
  readonly dir: string
  readonly signal: AbortSignal
}

/** A directory that is deleted, and a signal that is aborted, when the stack is disposed of. */
async function openTemporary(stack: AsyncDisposableStack): Promise<Temporary> {
  const dir = await mkdtemp(join(tmpdir(), 'kcp-testing-'))
  stack.defer(() => rm(dir, { recursive: true, force: true }))
  const life = new AbortController()
  stack.defer(() => life.abort())
  return { dir, signal: life.signal }
}

async function clusterOf(kubeconfig: string, stack: AsyncDisposableStack): Promise<TestCluster> {
  const transport = httpTransport(await loadKubeconfig({ text: kubeconfig }, { trusted: true }))
  stack.defer(() => transport[Symbol.asyncDispose]())
  return { kubeconfig, client: createClient(transport) }
}
