// A small heap: logical clusters that open thousands of watches are refused more, keep those that they have, and the
// process lives and answers others.
import { readFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import { expect } from 'chai'
import { parse } from 'yaml'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { isLongRun } from '#test/support/index.ts'

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** As many logical clusters as it takes to fill the heap: each may open 5,000 watches. */
const heaps = [
  { heapMb: 80, hostile: 2, together: false },
  ...(isLongRun
    ? [
        { heapMb: 192, hostile: 9, together: false },
        { heapMb: 256, hostile: 5, together: true },
      ]
    : []),
]
/**
 * So few at once that what is in flight is a small part of the heap between the limits: else the oldest may be ended
 * too.
 */
const perSession = 100
const maxWatches = 5000

for (const { heapMb, hostile, together } of heaps)
  describe(`kcp start with a heap of ${heapMb} MiB`, function () {
    this.timeout(600_000)
    let kcp: KcpInstance
    let small: Tenant | undefined
    const large: Tenant[] = []
    const sessions: ClientHttp2Session[] = []
    /** Sessions of watches that were open and have ended. */
    const ended: ClientHttp2Session[] = []

    before(async () => {
      kcp = await startInstance([], { env: { NODE_OPTIONS: `--max-old-space-size=${heapMb}` } })
      for (let i = 0; i < hostile; i++) large.push(await kcp.tenant(`large-${i}`))
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
        let status = 0
        stream.on('response', (headers) => resolve((status = Number(headers[':status']))))
        stream.on('error', () => resolve(0))
        stream.on('close', () => {
          if (status === 200) ended.push(session)
          resolve(0)
        })
        stream.resume()
      })

    it('refuses more watches with 429, keeps the oldest, lives, and answers the others', async () => {
      const quiet = small
      if (quiet === undefined) throw new Error('no tenant')
      const statuses = new Map<number, number>()
      const fill = async (tenant: Tenant): Promise<void> => {
        for (let opened = 0; opened < maxWatches && (together || !statuses.has(429)); opened += perSession) {
          const session = sessionOf(tenant)
          const answers = await Promise.all(Array.from({ length: perSession }, () => watch(session, tenant.base)))
          for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
          const answer = await quiet.http.request('GET', `${quiet.base}/api/v1/namespaces`)
          expect(answer.status, answer.text).to.equal(200)
        }
      }
      if (together) await Promise.all(large.map(fill))
      else for (const tenant of large) await fill(tenant)
      expect([...statuses.keys()]).to.have.members([200, 429])
      expect(kcp.process.running, 'the process lives').to.equal(true)
      expect(ended.filter((session) => session === sessions[0])).to.have.length(0)
    })
  })
