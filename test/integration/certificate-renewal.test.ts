// 24 hours in steps of ten minutes, then 400 days in steps of one (larger steps in `make test`), on a clock that the
// test moves: nothing that we issue runs out while it is used, and what was open before goes on.
import { expect } from 'chai'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { parse } from 'yaml'
import { rootClusterName } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import { createClient, httpTransport, type KubeClient } from '#client/index.ts'
import { adminKubeconfigRenewal } from '#cli/roles/admin-kubeconfig.ts'
import { hostServingCertificates } from '#cli/roles/host-serving-certificates.ts'
import { keepRenewed, type Renewal } from '#cli/roles/keep-renewed.ts'
import { servingCertificateRenewal } from '#cli/roles/serving-certificate.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { kcpCrds } from '#crds/index.ts'
import { runAsLeader } from '#reconcile/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import {
  createPki,
  createPkiMaterial,
  createVirtualApi,
  openPki,
  renewedClientCertificate,
  rootCluster,
  type Pki,
} from '#virtualapi/index.ts'
import { rounds, waitFor } from '#test/support/index.ts'

const minute = 60_000
const day = 24 * 60 * minute
const minutes = rounds({ short: 30, long: 10 })
const days = rounds({ short: 3, long: 1 })
const core = (resource: string) => ({ group: '', version: 'v1', resource })
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const operatorRequest = {
  commonName: 'kcp:operator',
  organizations: ['kcp:system'],
  realm: 'installation',
  days: 365,
} as const

describe('an installation that runs for longer than its certificates are valid', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  // The wall clock alone: durations are measured on another.
  let now = Date.now()
  const clock: Clock = { now: () => now, monotonic: () => performance.now() }
  let dir: string
  let port: number
  let pki: Pki
  let renewals: Renewal[]
  let root: KubeClient
  let operator: KubeClient

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kcp-renewal-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    pki = await openPki(dir, { clock })
    const born = rootCluster({ instanceId: store.instanceId, creationTimestamp: '2026-01-01T00:00:00Z' })
    const api = stack.use(
      await createVirtualApi({ store, pki, root: born, clock, log: silentLogger, metrics: createMetrics(), signal }),
    )
    root = api.client(rootClusterName)
    for (const crd of kcpCrds()) await root.create(crds, crd, { signal }).catch(tolerate('AlreadyExists'))
    await api.follow(root)
    const hosts = ['127.0.0.1', 'kcp.example']
    const current = await pki.servingCertificate(hosts)
    const listener = stack.use(await api.listen({ host: '127.0.0.1', port: 0, ...current }))
    port = listener.port
    const server = `https://127.0.0.1:${port}`
    renewals = [
      servingCertificateRenewal({ pki, hosts, listener, current, tellExpiry: () => undefined, log: silentLogger }),
      adminKubeconfigRenewal({ pki, file: join(dir, 'admin.kubeconfig'), server, clock }),
    ]
    const credentials = renewedClientCertificate(pki, operatorRequest, { clock })
    const transport = stack.use(
      httpTransport({
        refreshAfterMs: 0,
        async endpoint() {
          const { certificate: cert, key } = await credentials()
          // TLS libraries know the machine's clock alone: `handshake` verifies the server by ours.
          return { server, cert, key, insecureSkipTlsVerify: true }
        },
      }),
    )
    operator = createClient(transport, { basePath: '/clusters/root' })
    stack.defer(() => life.abort(new Error('the test is over')))
  })
  after(() => stack.disposeAsync())

  async function renewAll(): Promise<void> {
    for (const { renew } of renewals) await renew()
  }

  /** A new connection; its certificate must be good at the time of our clock. */
  async function handshake(): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port, servername: 'kcp.example', rejectUnauthorized: false })
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', () => resolve()).once('error', reject))
    const certificate = new X509Certificate(socket.getPeerCertificate().raw)
    expect(certificate.verify(new X509Certificate(pki.servingCa).publicKey)).to.equal(true)
    expect(certificate.checkHost('kcp.example')).to.equal('kcp.example')
    expect(now).to.be.within(certificate.validFromDate.getTime(), certificate.validToDate.getTime() - 29 * day)
    return socket
  }

  async function statusAs(tls: { cert?: Buffer; key?: Buffer }, headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      const path = '/clusters/root/api/v1/namespaces/default'
      const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false, headers, ...tls }
      const sent = request(options, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      sent.on('error', reject)
      sent.end()
    })
  }

  async function statusAsAdmin(): Promise<number> {
    const kubeconfig = parse(await readFile(join(dir, 'admin.kubeconfig'), 'utf8')) as {
      users: { user: Record<string, string> }[]
    }
    const bytes = (field: string): Buffer => Buffer.from(kubeconfig.users[0]?.user[field] ?? '', 'base64')
    return statusAs({ cert: bytes('client-certificate-data'), key: bytes('client-key-data') }, {})
  }

  async function tokenOf(seconds: number): Promise<string> {
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
    const spec = { audiences: [], expirationSeconds: seconds }
    const review = (await root.raw(path, {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
      signal,
    })) as { status: { token: string } }
    return review.status.token
  }

  it('serves, and is used by its operator and its admin, at every step', async () => {
    await renewAll()
    const watch = operator.watch(core('configmaps'), { namespace: 'default', signal })[Symbol.asyncIterator]()
    const first = watch.next()
    let terms = 0
    const election = new AbortController()
    const led = runAsLeader({
      client: operator,
      namespace: 'default',
      name: 'renewal',
      identity: 'test',
      lead: (term) => {
        terms++
        return new Promise<void>((resolve) => term.addEventListener('abort', () => resolve(), { once: true }))
      },
      log: silentLogger,
      signal: election.signal,
      clock,
      retryMs: 50,
    })
    await waitFor(() => terms === 1, { what: 'the lease', deadlineMs: 10_000, intervalMs: 10 })

    const serving = new Set<string>()
    const steps = [
      ...Array.from({ length: (24 * 60) / minutes }, () => minutes * minute),
      ...Array.from({ length: Math.floor(400 / days) }, () => days * day),
    ]
    for (const step of steps) {
      now += step
      await renewAll()
      const socket = await handshake()
      serving.add(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
      await operator.get(core('namespaces'), { name: 'default' }, { signal })
      expect(await statusAsAdmin()).to.equal(200)
    }
    // 90 days each, of which 60 are used.
    expect(serving.size).to.equal(7)
    expect(terms, 'times the lease was taken').to.equal(1)
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late', namespace: 'default' } }
    await operator.create(core('configmaps'), configMap, { signal })
    // The watch of the first day.
    for (let event = await first; ; event = await watch.next()) {
      expect(event.done).to.not.equal(true)
      const { object } = event.value as { object: { metadata: { name?: string } } }
      if (object.metadata.name === 'late') break
    }
    election.abort(new Error('it is over'))
    await led
  })

  it('refuses the certificate of the first day after a year, and tokens after their hour', async () => {
    const { certificate, key } = await pki.issueClientCertificate({ ...operatorRequest, days: 365 })
    const old = { cert: Buffer.from(certificate), key: Buffer.from(key) }
    const token = await tokenOf(3600)
    expect(await statusAs(old, {})).to.equal(200)
    expect(await statusAs({}, { authorization: `Bearer ${token}` })).to.equal(403)
    now += 59 * minute
    expect(await statusAs({}, { authorization: `Bearer ${token}` })).to.equal(403)
    now += 2 * minute
    expect(await statusAs({}, { authorization: `Bearer ${token}` })).to.equal(401)
    now += 366 * day
    expect(await statusAs(old, {})).to.equal(401)
  })

  it('keeps its renewed certificate over a restart', async () => {
    await renewAll()
    const again = await (await openPki(dir, { clock })).servingCertificate(['127.0.0.1', 'kcp.example'])
    const socket = await handshake()
    expect(new X509Certificate(again.certificate).fingerprint256).to.equal(socket.getPeerCertificate().fingerprint256)
    socket.destroy()
  })

  it('shares one certificate among processes with the same names, and keeps those of others', async () => {
    const material = await createPkiMaterial()
    const kept = hostServingCertificates(root, { namespace: 'default', signal })
    const process = (): Pki => createPki(material, { store: kept })
    const [a, b, c] = [process(), process(), process()]
    const pairs = await Promise.all([
      a.servingCertificate(['a.example']),
      b.servingCertificate(['a.example']),
      c.servingCertificate(['c.example']),
    ])
    expect(pairs[0].certificate).to.equal(pairs[1].certificate)
    expect(pairs[2].certificate).to.not.equal(pairs[0].certificate)
    expect(await process().servingCertificate(['a.example'])).to.deep.equal(pairs[0])
    expect(await process().servingCertificate(['c.example'])).to.deep.equal(pairs[2])
    for (let i = 0; i < 20; i++) await process().servingCertificate([`host${i}.example`])
    const secret = (await root.get(
      core('secrets'),
      { namespace: 'default', name: 'kcp-serving-certificates' },
      {
        signal,
      },
    )) as { data?: object }
    expect(Object.keys(secret.data ?? {})).to.have.length(16)
  })

  it('renews by a timer, and tries again after a failure', async () => {
    let calls = 0
    const renew = (): Promise<void> => (++calls === 1 ? Promise.reject(new Error('no disk')) : Promise.resolve())
    await using renewing = keepRenewed([{ what: 'it', renew }], { log: silentLogger, everyMs: 2 })
    await waitFor(() => calls > 2, { what: 'a third call', deadlineMs: 10_000, intervalMs: 2 })
    await renewing[Symbol.asyncDispose]()
    const stopped = calls
    await new Promise((resolve) => setImmediate(resolve))
    expect(calls).to.equal(stopped)
  })
})
