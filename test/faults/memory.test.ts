// A small heap: a logical cluster that opens thousands of watches loses them, and the process lives and answers others.
import { readFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import { expect } from 'chai'
import { parse } from 'yaml'
import { startInstance, type KcpInstance, type Tenant } from '../integration/kcp-instance.ts'

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

const heapMb = 52
const perSession = 500
const maxWatches = 5000

describe('kcp start with little memory', function () {
  this.timeout(300_000)
  let kcp: KcpInstance
  let [large, small]: [Tenant | undefined, Tenant | undefined] = [undefined, undefined]
  const sessions: ClientHttp2Session[] = []

  before(async () => {
    kcp = await startInstance([], { env: { NODE_OPTIONS: `--max-old-space-size=${heapMb}` } })
    large = await kcp.tenant('large')
    small = await kcp.tenant('small')
  })
  after(async () => {
    for (const session of sessions) session.destroy()
    await kcp[Symbol.asyncDispose]()
  })

  function sessionOf({ kubeconfig }: Tenant): ClientHttp2Session {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
    const user = users[0]?.user
    const decode = (text = ''): Buffer => Buffer.from(text, 'base64')
    const session = connect(new URL(clusters[0]?.cluster.server ?? '').origin, {
      cert: decode(user?.['client-certificate-data']),
      key: decode(user?.['client-key-data']),
      rejectUnauthorized: false,
    })
    session.on('error', () => undefined)
    sessions.push(session)
    return session
  }

  /** Resolves with the status of a watch that stays open. */
  const watch = (session: ClientHttp2Session, base: string): Promise<number> =>
    new Promise((resolve) => {
      const stream = session.request({ ':path': `${base}/api/v1/configmaps?watch=1` })
      stream.on('response', (headers) => resolve(Number(headers[':status'])))
      stream.on('error', () => resolve(0))
      stream.on('close', () => resolve(0))
      stream.resume()
    })

  it('refuses the watches of the largest with 429, lives, and answers the others', async () => {
    if (large === undefined || small === undefined) throw new Error('no tenants')
    const { base } = large
    const statuses = new Map<number, number>()
    for (let opened = 0; opened < maxWatches && !statuses.has(429); opened += perSession) {
      const session = sessionOf(large)
      const answers = await Promise.all(Array.from({ length: perSession }, () => watch(session, base)))
      for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const answer = await small.http.request('GET', `${small.base}/api/v1/namespaces`)
      expect(answer.status, answer.text).to.equal(200)
    }
    expect([...statuses.keys()]).to.have.members([200, 429])
    expect(kcp.process.running, 'the process lives').to.equal(true)
  })
})
