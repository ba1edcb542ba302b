// The virtual API server in the test's own process, behind its real listener, for tests that inspect open watches or
// the store's content.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import {
  clusterIdOf,
  rootClusterName,
  type ClusterId,
  type ClusterName,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { kcpCrds } from '#crds/index.ts'
import type { Store } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createLogger, createMetrics } from '#telemetry/index.ts'
import { createVirtualApi, openPki, rootCluster, type Pki, type VirtualApi } from '#virtualapi/index.ts'

const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }

export interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export interface ServedTenant {
  readonly name: ClusterName
  readonly id: ClusterId
  readonly base: string
  /** Certificate and key, PEM: system:masters inside, without rights elsewhere. */
  readonly tls: { readonly cert: string; readonly key: string }
  request(method: string, path: string, options?: { body?: unknown; headers?: Record<string, string> }): Promise<Reply>
  /** Resolves with the response once its headers have arrived; the test reads the body. */
  open(
    method: string,
    path: string,
    options?: { headers?: Record<string, string>; body?: string; signal?: AbortSignal },
  ): Promise<IncomingMessage>
  http2(): ClientHttp2Session
  socket(options?: { ALPNProtocols?: string[] }): Promise<TLSSocket>
}

export interface ServedApi extends AsyncDisposable {
  readonly api: VirtualApi
  readonly pki: Pki
  readonly store: Store
  readonly port: number
  readonly root: KubeClient
  readonly signal: AbortSignal
  /** Creates a LogicalCluster and an admin of it. */
  tenant(name: string): Promise<ServedTenant>
  /** Creates another user inside: named, with groups, with only the rights that RBAC gives. */
  user(tenant: ServedTenant, name: string, groups?: readonly string[]): Promise<ServedTenant>
}

/** Starts it on an empty store and a free port. */
export async function startServedApi({
  firstRequestMs = 60_000,
  ...options
}: Partial<Parameters<typeof createVirtualApi>[0]> & { firstRequestMs?: number } = {}): Promise<ServedApi> {
  await using stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  const dir = mkdtempSync(join(tmpdir(), 'kcp-served-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
  const pki = await openPki(dir)
  const born = rootCluster({ instanceId: store.instanceId, creationTimestamp: '2026-01-01T00:00:00Z' })
  const log = createLogger({ level: 'error' })
  const api = stack.use(
    await createVirtualApi({ store, pki, root: born, log, metrics: createMetrics(), signal, ...options }),
  )
  const root = api.client(rootClusterName)
  for (const crd of kcpCrds()) await root.create(crds, crd, { signal }).catch(tolerate('AlreadyExists'))
  await api.follow(root)
  const serving = await pki.servingCertificate(['127.0.0.1'])
  const listener = stack.use(await api.listen({ host: '127.0.0.1', port: 0, firstRequestMs, ...serving }))
  stack.defer(() => life.abort(new Error('the test is over')))
  const { port } = listener
  const { stack: clients } = { stack: stack.use(new AsyncDisposableStack()) }
  const as = async (
    name: ClusterName,
    id: ClusterId,
    user: string,
    groups: readonly string[],
  ): Promise<ServedTenant> => {
    const realm = { commonName: user, organizations: groups, realm: id, days: 1 } as const
    const { certificate: cert, key } = await pki.issueClientCertificate(realm)
    const tls = { cert, key, ca: pki.servingCa }
    const agent = new Agent({ keepAlive: true, ...tls })
    clients.defer(() => agent.destroy())
    const open: ServedTenant['open'] = (method, path, more = {}) =>
      new Promise((resolve, reject) => {
        const outgoing = httpsRequest({ host: '127.0.0.1', port, method, path, agent, ...more }, resolve)
        outgoing.on('error', reject)
        outgoing.end(more.body)
      })
    return {
      name,
      id,
      base: `/clusters/${name}`,
      tls,
      open,
      async request(method, path, { body, headers = {} } = {}) {
        const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
        const typed = text === undefined ? headers : { 'content-type': 'application/json', ...headers }
        const response = await open(method, path, {
          headers: typed,
          ...(text === undefined ? {} : { body: text }),
        })
        const chunks: Buffer[] = []
        for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
        return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() }
      },
      http2() {
        const session = connectHttp2(`https://127.0.0.1:${port}`, tls)
        session.on('error', () => undefined)
        clients.defer(() => session.destroy())
        return session
      },
      async socket(more = {}) {
        const socket = connectTls({ host: '127.0.0.1', port, ...tls, ...more })
        socket.on('error', () => undefined)
        clients.defer(() => void socket.destroy())
        await new Promise<void>((resolve) => socket.once('secureConnect', resolve))
        return socket
      },
    }
  }
  const owned = stack.move()
  return {
    pki,
    api,
    store,
    port,
    root,
    signal,
    async tenant(name) {
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      const created = await root.create<KubeObject>(logicalClusters, object, { signal })
      const id = clusterIdOf(created.metadata.uid ?? '')
      await untilTrue(() => api.directory.byId(id) !== undefined, `"${name}" is served`)
      return as(name as ClusterName, id, 'admin', ['system:masters'])
    },
    user: (tenant, name, groups = []) => as(tenant.name, tenant.id, name, groups),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Resolves once the condition holds; after `deadlineMs` (10 s) rejects with what did not become true. */
export async function untilTrue(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
