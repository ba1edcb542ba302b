// A member in pull mode: its agent dials out, and everything that kcp does in the member goes through the tunnel.
import { expect } from 'chai'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiEntrance } from '#agent/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { connectToMember, type MemberConnection } from '#client/member/index.ts'
import { memberClusters } from '#crds/index.ts'
import { startSimulatedMember, type SimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createMembers, type Pki } from '#virtualapi/index.ts'
import { startHttpProxy } from '#test/support/http-proxy.ts'
import { waitFor } from '#test/support/index.ts'
import { startServedApi, type ServedApi } from './served-api.ts'
import { registerInPullMode, runAgent, type TunnelledMember } from './tunnelled-member.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

describe('the tunnel of a member in pull mode', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let served: ServedApi
  let pki: Pki
  let paris: SimulatedMember
  let connection: MemberConnection
  let member: TunnelledMember

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-tunnel-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    stack.defer(() => life.abort())
    served = stack.use(
      await startServedApi({
        members: ({ loopback, dialer }) =>
          createMembers({ transport: loopback, basePath: '/clusters/root', dialer, log: silentLogger, signal }),
      }),
    )
    pki = served.pki
    paris = stack.use(await startSimulatedMember({ name: 'paris', dir, log: silentLogger, signal }))
    member = await register('paris')
    startAgent(member, paris)
    connection = stack.use(await connectThrough(member))
    await waitFor(async () => await isReached(connection.client), { what: 'the agent to connect', deadlineMs: 10_000 })
  })
  after(() => stack.disposeAsync())

  const register = (name: string): Promise<TunnelledMember> =>
    registerInPullMode(name, { clusters: served.root, pki, signal })
  const startAgent = (of: TunnelledMember, { kubeconfig }: SimulatedMember): void =>
    void runAgent(of, { url: `https://127.0.0.1:${served.port}`, ca: pki.servingCa }, { kubeconfig, signal })

  const connectThrough = ({ name, uid }: { name: string; uid: string }): Promise<MemberConnection> =>
    connectToMember({ kind: 'agent', member: { name, uid } }, { responseTimeoutMs: 10_000, dialer: served.api.dialer })

  const isReached = async (client: KubeClient): Promise<boolean> =>
    await client.tryGet(namespaces, { name: 'default' }, { signal }).then(
      () => true,
      () => false,
    )

  it('carries reads, writes and watches', async () => {
    const { client } = connection
    const object: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } }
    const created = await client.create<KubeObject>(configMaps, { ...object, data: { k: 'v' } }, { signal })
    expect(created['data']).to.deep.equal({ k: 'v' })
    const { items } = await client.list<KubeObject>(configMaps, { namespace: 'default', signal })
    expect(items.map(({ metadata }) => metadata.name)).to.include('a')
    const watch = await connection.transport.request({
      method: 'GET',
      path: '/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%3Da',
      signal,
    })
    expect(watch.status).to.equal(200)
    const [first] = await Array.fromAsync(take(watch.body, 1))
    expect(Buffer.from(first ?? []).toString()).to.include('"ADDED"')
  })

  it('removes every header that names an identity, before a request reaches the member', async () => {
    const headers = {
      authorization: 'Bearer forged',
      'impersonate-user': 'system:admin',
      'Impersonate-Group': 'system:masters',
      'x-remote-user': 'system:admin',
      'x-forwarded-for': '10.0.0.1',
      cookie: 'a=b',
    }
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
    const own = await connection.transport.request({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal,
    })
    expect(own.status).to.equal(201)
    const { status } = JSON.parse(await textOf(own.body)) as { status: { userInfo: { username: string } } }
    expect(status.userInfo.username).to.not.equal('system:admin')
  })

  it('lets others use the member as the ServiceAccount that its MemberCluster names, and as no other', async () => {
    const access = { serviceAccountRef: { namespace: 'default', name: 'fleet' } }
    await served.root.patch(memberClusters, { name: 'paris' }, 'merge', { spec: { access } }, { signal })
    const tokens = { group: 'virtual.kcp.dev', version: 'v1alpha1', resource: 'memberclusters' }
    const token = async (): Promise<string> => {
      const asked = { apiVersion: 'virtual.kcp.dev/v1alpha1', kind: 'AccessToken', metadata: { name: 'paris' } }
      const made = await served.root.create<KubeObject>(tokens, asked, { subresource: 'access', signal })
      return (made['status'] as { token: string }).token
    }
    const bearer = await waitFor(async () => await token().catch(() => undefined), {
      what: 'access',
      deadlineMs: 10_000,
    })
    const ask = async (path: string, body?: object): Promise<{ status: number; text: string }> => {
      const sent = request({
        ...{ host: '127.0.0.1', port: served.port, rejectUnauthorized: false, agent: false },
        ...{ method: body === undefined ? 'GET' : 'POST', path: `/services/members/paris${path}` },
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
      const [response] = (await once(sent, 'response')) as [AsyncIterable<Uint8Array> & { statusCode?: number }]
      return { status: response.statusCode ?? 0, text: await textOf(response) }
    }
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const { status, text } = await ask('/apis/authentication.k8s.io/v1/selfsubjectreviews', review)
    expect(status, text).to.equal(201)
    const { userInfo } = (JSON.parse(text) as { status: { userInfo: { username: string; groups: string[] } } }).status
    expect(userInfo.username).to.equal('system:serviceaccount:default:fleet')
    expect(userInfo.groups).not.to.include('system:masters')
    expect((await ask('/api/v1/namespaces/default/configmaps')).status).to.equal(403)
    expect((await ask('/as/kube-system/default/api/v1/namespaces/default/configmaps')).status).to.equal(404)
  })

  it('serves our own processes only, and only the member that they name', async () => {
    const { port } = served
    const acme = await served.tenant('acme')
    const path = `/services/agent/paris/connection?uid=${member.uid}&session=control`
    for (const tls of [acme.tls, { cert: member.certificate, key: member.key }, {}])
      expect(await upgradeStatus({ port, path, protocol: 'kcp-connection', ...tls })).to.be.oneOf([401, 403])
    const other = { kind: 'agent', member: { name: 'paris', uid: 'another' } } as const
    await using wrong = await connectToMember(other, { responseTimeoutMs: 5000, dialer: served.api.dialer })
    const error = await wrong.client.list(namespaces, { signal }).catch((caught: unknown) => caught)
    expect(String(error)).to.include('no agent of member cluster "paris"')
  })

  it('is opened by the agent of exactly this member only', async () => {
    const { port } = served
    const east = await register('eu-1')
    await register('eu-10')
    const as = { port, protocol: 'websocket', cert: east.certificate, key: east.key }
    const of = (name: string): Promise<number> =>
      upgradeStatus({ ...as, path: `/services/agent/${name}/tunnel?session=control` })
    for (const name of ['eu-10', 'eu', 'EU-1', 'eu-1.', 'eu-1%2e', 'paris', '%65u-1', 'eu-1/../paris'])
      expect(await of(name), name).to.be.oneOf([401, 404])
    expect(await of('eu-1')).to.equal(101)
  })

  it('stalls only the reader that does not read', async () => {
    const big = 'x'.repeat(900_000)
    for (let i = 0; i < 8; i++) {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `big-${i}`, namespace: 'default' } }
      await connection.client.create<KubeObject>(configMaps, { ...object, data: { big } }, { signal })
    }
    const path = '/api/v1/namespaces/default/configmaps'
    const stalled = await Promise.all(
      Array.from({ length: 24 }, () =>
        connection.transport.request({ method: 'GET', path: `${path}?watch=1`, signal }),
      ),
    )
    const { items } = await connection.client.list<KubeObject>(configMaps, { namespace: 'default', signal })
    expect(items.length).to.be.greaterThan(8)
    for (const { body } of stalled) await body[Symbol.asyncIterator]().return?.()
  })

  it('passes through an HTTP proxy that cuts idle connections', async () => {
    const proxy = stack.use(await startHttpProxy())
    process.env['https_proxy'] = `http://me:secret@127.0.0.1:${proxy.port}`
    stack.defer(() => {
      delete process.env['https_proxy']
    })
    const oslo = await register('oslo')
    startAgent(oslo, paris)
    await using through = await connectThrough(oslo)
    await waitFor(async () => await isReached(through.client), { what: 'the agent to connect', deadlineMs: 10_000 })
    expect(proxy.seen).to.deep.equal(new Set([`CONNECT 127.0.0.1:${served.port} Basic ${btoa('me:secret')}`]))
    proxy.cut()
    await waitFor(async () => await isReached(through.client), { what: 'another session', deadlineMs: 10_000 })
    delete process.env['https_proxy']
  })

  it('lets pods of the member reach their API, with TLS from end to end', async () => {
    const installation = { url: `https://127.0.0.1:${served.port}` }
    await using entrance = await ApiEntrance.open({ installation, port: 0, maxPerPod: 2, log: silentLogger })
    const get = async (): Promise<number> => {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      const to = { host: '127.0.0.1', port: entrance.port, servername: 'kubernetes.default.svc', ca: pki.servingCa }
      const sent = request({ ...to, path: '/version', agent: false }, ({ statusCode = 0 }) => resolve(statusCode))
      sent.on('error', reject)
      sent.end()
      return await promise.finally(() => sent.destroy())
    }
    expect(await get()).to.equal(200)
    const held = [connect(entrance.port, '127.0.0.1'), connect(entrance.port, '127.0.0.1')]
    await Promise.all(held.map((socket) => once(socket, 'connect')))
    expect(String(await get().catch((error: unknown) => error))).to.include('Error')
    for (const socket of held) socket.destroy()
    await waitFor(async () => (await get().catch(() => 0)) === 200, { what: 'a place', deadlineMs: 5000 })
  })

  it('ends at once when the certificate of the agent is revoked', async () => {
    await served.root.patch(memberClusters, { name: 'paris' }, 'merge', { spec: { agent: null } }, { signal })
    await waitFor(async () => !(await isReached(connection.client)), { what: 'the tunnel to end', deadlineMs: 5000 })
  })
})

async function* take<T>(source: AsyncIterable<T>, count: number): AsyncGenerator<T> {
  let taken = 0
  for await (const item of source) {
    yield item
    if (++taken === count) return
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString()
}

/** The status with which the server answers an upgrade. */
async function upgradeStatus({
  port,
  path,
  protocol,
  ...tls
}: {
  port: number
  path: string
  protocol: string
  cert?: string
  key?: string
}): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = {
    connection: 'Upgrade',
    upgrade: protocol,
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  }
  const sent = request({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false, agent: false, ...tls })
  sent.on('response', ({ statusCode = 0 }) => resolve(statusCode))
  sent.on('upgrade', ({ statusCode = 0 }) => resolve(statusCode))
  sent.on('error', reject)
  sent.end()
  return await promise.finally(() => sent.destroy())
}
