// `kcp apiserver --workers 2` on a real host: two processes on one port share the logical clusters. One is killed, all
// are stopped, and nobody else reaches the sockets between them.
import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { bucketCount } from '#store/ownership/index.ts'
import { ensurePrograms, repositoryRoot, runCommand, runKcp, waitFor } from '#test/support/index.ts'
import { openRawClient } from './raw-client.ts'
import { isGone, startReplicas, workersOf, type ReplicaSet, type RunningReplica } from './replicas.ts'

const collection = '/clusters/acme/api/v1/namespaces/default/configmaps'
const deadlineMs = 60_000

describe('kcp apiserver with two workers', function () {
  this.timeout(300_000)
  let set: ReplicaSet
  let server: RunningReplica
  let identity: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer }
  let kubeconfig: string
  const logs = mkdtempSync(join(tmpdir(), 'kcp-worker-logs-'))

  before(async () => {
    set = await startReplicas(1, { apiserverArgs: ['--workers', '2', '--audit-log-path', join(logs, 'audit.log')] })
    await set.create('acme')
    const [first] = set.replicas
    if (first === undefined) throw new Error('no server')
    server = first
    kubeconfig = await set.kubeconfig('acme', server)
    identity = identityOf(kubeconfig)
    await allOwned()
  })
  after(async () => {
    await set[Symbol.asyncDispose]()
    rmSync(logs, { recursive: true, force: true })
  })

  /** Resolves when two workers own all buckets. */
  async function allOwned(): Promise<void> {
    const isOwned = async (): Promise<boolean> => {
      const claims = (await set.leases()).map((lease) => lease.claims.size)
      return claims.length === 2 && claims.reduce((sum, size) => sum + size, 0) === bucketCount
    }
    await waitFor(isOwned, { what: 'two workers to own all buckets', deadlineMs })
  }

  /** A session over HTTP/2 on a connection of its own. */
  async function openSession(): Promise<ClientHttp2Session> {
    const session = connectHttp2(server.url, identity)
    await once(session, 'connect')
    return session
  }

  /** The audit lines of all workers, as a scrape counts them. */
  async function auditLines(): Promise<number> {
    const file = await set.installationKubeconfig('*', server)
    await using client = openRawClient({ kubeconfig: file, host: server.address })
    const { text } = await client.request('GET', '/metrics')
    return Number(/^kcp_audit_lines_total (\d+)$/m.exec(text)?.[1])
  }

  /** Resolves with the status of a GET. */
  async function get(session: ClientHttp2Session, path: string): Promise<number> {
    const stream = session.request({ ':path': path })
    const [{ ':status': status }] = (await once(stream, 'response')) as [{ ':status': number }]
    stream.resume()
    await once(stream, 'close')
    return status
  }

  it('share the logical clusters, and answer for all of them on every connection', async () => {
    const sizes = (await set.leases()).map(({ claims }) => claims.size)
    expect(Math.min(...sizes)).to.be.greaterThan(bucketCount / 3)
    for (let n = 0; n < 12; n++) {
      await using client = openRawClient({ kubeconfig, host: server.address })
      const body = { metadata: { name: `one-${n}` } }
      expect((await client.request('POST', collection, { body })).status).to.equal(201)
      const { json } = await client.request('GET', collection)
      expect((json()['items'] as unknown[]).length, 'each connection sees all writes').to.equal(n + 2)
    }
  })

  it('log each request once, in the file of the worker that answers it', async () => {
    const posted = async (): Promise<number> => {
      const files = ['audit.log', 'audit.worker-2.log'].map((name) => readFileSync(join(logs, name), 'utf8'))
      return files.map((text) => text.split('"verb":"create"').length - 1).reduce((a, b) => a + b)
    }
    const before = await posted()
    for (let n = 0; n < 10; n++) {
      await using client = openRawClient({ kubeconfig, host: server.address })
      await client.request('POST', `${collection}?dryRun=All`, { body: { metadata: { name: `logged-${n}` } } })
    }
    await waitFor(async () => (await posted()) >= before + 10, { what: 'the requests to be logged', deadlineMs })
    const text = readdirSync(logs)
      .map((name) => readFileSync(join(logs, name), 'utf8'))
      .join('')
    expect(text.match(/"stage":"ResponseComplete"[^\n]*configmaps\?dryRun=All[^\n]*"verb":"create"/g)).to.have.length(
      10,
    )
  })

  it('show the metrics of both in one scrape', async () => {
    const file = await set.installationKubeconfig('*', server)
    await using client = openRawClient({ kubeconfig: file, host: server.address })
    const { text } = await client.request('GET', '/metrics')
    expect(text.split('\n')).to.include(`kcp_owned_buckets ${bucketCount}`)
    expect(text.match(/^kcp_certificate_expiry_timestamp_seconds\{certificate="client-authority"\} (\d+)$/m)?.[1])
      .to.be.a('string')
      .with.length.at.most(String(Date.now()).length - 3)
  })

  it('lead a client of HTTP/2 to the worker that owns its logical cluster, and answer all its requests', async () => {
    const seen = { away: 0, kept: 0 }
    for (let n = 0; n < 60 && (seen.away === 0 || seen.kept === 0); n++) {
      const session = await openSession()
      const told: number[] = []
      session.once('goaway', (code: number) => told.push(code))
      const statuses: number[] = []
      while (statuses.length < 40 && told.length === 0) statuses.push(await get(session, collection))
      expect(new Set(statuses)).to.deep.equal(new Set([200]))
      if (told.length > 0) expect(statuses.length, 'requests before GOAWAY').to.be.within(32, 34)
      seen[told.length > 0 ? 'away' : 'kept']++
      session.destroy()
    }
    expect(seen.away, 'connections that were led away').to.be.greaterThan(0)
    expect(seen.kept, 'connections to the owner').to.be.greaterThan(0)
  })

  it('lead a client of HTTP/1.1 there as well, and end no watch', async () => {
    const closedAfter: number[] = []
    let kept = 0
    for (let n = 0; n < 60 && (closedAfter.length === 0 || kept === 0); n++) {
      const agent = new Agent({ ...identity, keepAlive: true, maxSockets: 1 })
      let asked = 0
      let isClosed = false
      while (asked < 40 && !isClosed) {
        const outgoing = request(`${server.url}${collection}`, { agent }).end()
        const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
        expect(response.statusCode).to.equal(200)
        asked++
        isClosed = response.headers.connection === 'close'
        response.resume()
        await once(response, 'end')
      }
      if (isClosed) closedAfter.push(asked)
      else kept++
      agent.destroy()
    }
    expect(closedAfter[0]).to.equal(32)
    expect(kept).to.be.greaterThan(0)
  })

  it('take over from a worker that is killed, and start it again', async () => {
    const pid = await set.ownerPidOf('acme')
    const before = workersOf(server)
    expect(before).to.have.length(2).and.include(pid)
    const written = await auditLines()
    process.kill(pid, 'SIGKILL')
    const began = performance.now()
    const isWritten = async (): Promise<boolean> => {
      await using client = openRawClient({ kubeconfig, host: server.address })
      const body = { metadata: { generateName: 'after-' } }
      return (await client.request('POST', collection, { body })).status === 201
    }
    await waitFor(isWritten, { what: 'a write after the kill', deadlineMs })
    console.log(`      writes again after ${Math.round(performance.now() - began)} ms`)
    expect(await set.ownerPidOf('acme')).not.to.equal(pid)
    await waitFor(() => workersOf(server).length === 2, { what: 'the worker to be started again', deadlineMs })
    await allOwned()
    await using client = openRawClient({ kubeconfig, host: server.address })
    const { items } = (await client.request('GET', collection)).json() as { items: { metadata: { name: string } }[] }
    expect(items.filter(({ metadata }) => metadata.name.startsWith('one-'))).to.have.length(12)
    expect(server.process.log()).to.contain('a worker has ended and is started again')
    expect(await auditLines(), 'a counter after the end of a worker').to.be.greaterThan(written)
  })

  it('let nobody but their own user reach the sockets between them', async () => {
    const sockets = socketsOf(workersOf(server)[0] ?? 0)
    expect(statSync(sockets).mode & 0o777).to.equal(0o700)
    const names = readdirSync(sockets)
    expect(names).to.have.length(2)
    for (const name of names) {
      const path = join(sockets, name)
      expect(statSync(path).mode & 0o777).to.equal(0o600)
      const program = `require('node:net').connect(${JSON.stringify(path)}).on('error', (e) => console.log(e.code)).on('connect', () => process.exit(1))`
      const nobody = 65534
      const said = await new Promise<string>((resolve, reject) =>
        execFile(process.execPath, ['--eval', program], { uid: nobody, gid: nobody, cwd: '/' }, (error, stdout) =>
          error === null ? resolve(stdout.trim()) : reject(new Error('nobody connected', { cause: error })),
        ),
      )
      expect(said).to.equal('EACCES')
    }
  })

  it('believe no client that says who its own client is', async () => {
    await using client = openRawClient({ kubeconfig, host: server.address })
    const forged = await client.request('GET', collection, { headers: ['X-Kcp-Hop-Address', '192.0.2.1'] })
    expect(forged.status).to.equal(400)
  })

  it('are as many in a pod as the chart says, with a port for each', async () => {
    const { helm } = await ensurePrograms(['helm'])
    const render = async (workers: number): Promise<string> => {
      const values = ['--set', `apiserver.workers=${workers},networkPolicy.enabled=true`]
      const chart = join(repositoryRoot, 'charts/kcp')
      return (await runCommand(helm, ['template', 'kcp', chart, '--kube-version', '1.34.3', ...values])).stdout
    }
    expect(await render(3))
      .to.contain('--workers=3')
      .and.contain('{port: 6444, protocol: TCP, endPort: 6446}')
    expect(await render(1))
      .to.contain('{port: 6444, protocol: TCP}')
      .and.not.contain('--workers')
  })

  it('refuse a port that is in use, and a stream that both would write to', async () => {
    const flags = ['apiserver', '--kubeconfig', set.host.kubeconfig, '--workers', '2', '--bind-address', server.address]
    const inUse = await runKcp([...flags, '--port', String(server.port)], { expectCode: 1 })
    expect(inUse.stderr).to.contain(`cannot listen on ${server.address}:${server.port}`)
    const audited = await runKcp([...flags, '--audit-log-path', '-'], { expectCode: 2 })
    expect(audited.stderr).to.contain('--audit-log-path - is for one worker')
  })

  it('end when their supervisor is killed, and hand over when it is stopped', async () => {
    const workers = workersOf(server)
    const sockets = socketsOf(workers[0] ?? 0)
    await server.process.kill()
    await waitFor(() => workers.every(isGone), { what: 'the workers of a killed supervisor to end', deadlineMs })
    await waitFor(() => !existsSync(sockets), { what: 'their sockets to be removed', deadlineMs })
    await server.process.start()
    const isReady = (): boolean => server.process.log().split('with 2 workers').length === 3
    await waitFor(isReady, { what: 'the server to be ready again', deadlineMs })
    await allOwned()
    await server.process.stop()
    expect(await server.process.exited).to.deep.equal({ code: 0, signal: null })
    expect(await set.leases()).to.deep.equal([])
  })
})

function identityOf(file: string): { ca: Buffer; cert: Buffer; key: Buffer } {
  const { clusters, users } = parse(readFileSync(file, 'utf8')) as {
    clusters: { cluster: Record<string, string> }[]
    users: { user: Record<string, string> }[]
  }
  const bytes = (text = ''): Buffer => Buffer.from(text, 'base64')
  const user = users[0]?.user ?? {}
  return {
    ca: bytes(clusters[0]?.cluster['certificate-authority-data']),
    cert: bytes(user['client-certificate-data']),
    key: bytes(user['client-key-data']),
  }
}

/** The directory of the sockets, as the worker was told. */
function socketsOf(pid: number): string {
  const found = /KCP_WORKER_SOCKETS=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))
  if (found?.[1] === undefined) throw new Error(`process ${pid} is no worker`)
  return found[1]
}
