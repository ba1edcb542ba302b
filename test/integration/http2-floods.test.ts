// Floods of requests over HTTP/2: they are refused in turns, so that others are answered soon, and clients that mean
// well are served.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { expect } from 'chai'
import { parse } from 'yaml'
import { isLongRun, rounds } from '#test/support/index.ts'
import type { Flood } from './http2-flood.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

// Generous in `make test`, where other suites share the machine.
const maxWaitMs = isLongRun ? 150 : 5000
const requests = rounds({ short: 300, long: 1000 })
const configMaps = '/clusters/acme/api/v1/namespaces/default/configmaps'

describe('floods over HTTP/2', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let acme: Tenant
  let quiet: Tenant
  let tls: { readonly cert: string; readonly key: string }
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    quiet = await kcp.tenant('quiet')
    const { users } = parse(readFileSync(acme.kubeconfig, 'utf8')) as { users: { user: Record<string, string> }[] }
    const decode = (name: string): string => Buffer.from(users[0]?.user[name] ?? '', 'base64').toString()
    tls = { cert: decode('client-certificate-data'), key: decode('client-key-data') }
    expect((await acme.http.request('GET', configMaps)).status).to.equal(200)
  })
  after(() => kcp[Symbol.asyncDispose]())

  /** Floods the server; resolves with the answers by status, and the longest wait of a neighbour meanwhile. */
  async function flood(options: Omit<Flood, 'port'>): Promise<{ statuses: Record<string, number>; worstMs: number }> {
    const program = new URL('./http2-flood.ts', import.meta.url)
    const child = fork(program, [JSON.stringify({ port: kcp.port, ...options })])
    const state = { isOver: false }
    const told = once(child, 'message').finally(() => (state.isOver = true))
    let worstMs = 0
    while (!state.isOver) {
      const began = performance.now()
      expect((await quiet.http.request('GET', `${quiet.base}/api/v1/namespaces/default`)).status).to.equal(200)
      worstMs = Math.max(worstMs, performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const [statuses] = (await told) as [Record<string, number>]
    return { statuses, worstMs }
  }

  for (const { title, options } of [
    { title: 'of one tenant, over its budget', options: { connections: 8, requests, certified: true } },
    { title: 'without a certificate', options: { connections: 30, requests } },
    {
      title: 'of watches that connect again and again',
      options: { connections: 8, requests, rounds: 3, certified: true, path: `${configMaps}?watch=1` },
    },
    {
      title: 'of clients that take no answer',
      options: { connections: 8, requests, rounds: 2, certified: true, zeroWindow: true },
    },
    {
      title: 'of requests that are reset at once',
      options: { connections: 8, requests, rounds: 2, certified: true, resets: true },
    },
  ])
    it(`let others wait for a short time: ${title}`, async () => {
      const { certified = false, ...more }: Partial<Flood> & { certified?: boolean } = options
      const all = { path: configMaps, rounds: 1, connections: 1, requests: 1, ...more, ...(certified && tls) }
      const { statuses, worstMs } = await flood(all)
      if (process.env['KCP_SHOW'] !== undefined) console.log(`      ${worstMs.toFixed(0)} ms`, JSON.stringify(statuses))
      expect(worstMs, JSON.stringify(statuses)).to.be.below(maxWaitMs)
    })

  it('do not keep a client from 240 watches over one connection, as informers open them, and from other requests on it', async () => {
    const session = connect(`https://127.0.0.1:${kcp.port}`, { ...tls, rejectUnauthorized: false })
    const ask = (path: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':path': path })
        stream.on('error', reject)
        stream.on('response', (headers) => resolve(headers[':status'] ?? 0))
        stream.resume()
      })
    const watches = Array.from({ length: 240 }, () => ask(`${configMaps}?watch=1`))
    expect(new Set(await Promise.all(watches))).to.deep.equal(new Set([200]))
    expect(session.remoteSettings.maxConcurrentStreams).to.equal(250)
    expect(await ask(configMaps)).to.equal(200)
    session.destroy()
  })

  it('end with a GOAWAY for a connection that goes on after many refusals, whose watches stay', async () => {
    const session = connect(`https://127.0.0.1:${kcp.port}`, { ...tls, rejectUnauthorized: false })
    session.on('error', () => undefined)
    const goneAway = once(session, 'goaway').then(() => true)
    const watch = session.request({ ':path': `${configMaps}?watch=1` })
    const [headers] = (await once(watch, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).to.equal(200)
    watch.resume()
    // Its places for large bodies are taken, and those that wait: the next ones are refused at once.
    const large = { ':path': configMaps, ':method': 'POST', 'content-length': '1000000' }
    let refusals = 0
    const refuse = (): Promise<void> =>
      new Promise((resolve) => {
        if (session.closed || session.destroyed) {
          resolve()
          return
        }
        const stream = session.request(large)
        stream.on('error', () => undefined)
        stream.once('close', resolve)
        stream.once('response', (answer) => {
          if (answer[':status'] === 429) refusals++
          stream.close(8)
        })
        stream.write('{')
      })
    while (!session.closed && refusals < 2000)
      await Promise.all(
        Array.from({ length: 120 }, refuse)
          .slice(0, 120)
          .map((one) => Promise.race([one, new Promise((resolve) => setTimeout(resolve, 300))])),
      )
    expect(await Promise.race([goneAway, new Promise((resolve) => setTimeout(() => resolve(false), 5000))])).to.equal(
      true,
    )
    expect(refusals).to.be.within(400, 1999)
    expect(watch.closed).to.equal(false)
    session.destroy()
  })
})
