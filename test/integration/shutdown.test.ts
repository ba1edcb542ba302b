// SIGTERM under load: no request is cut off, no acknowledged write is lost.
import { expect } from 'chai'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { freePort, repositoryRoot, startProcess, type ManagedProcess } from '#test/support/index.ts'

interface Kubeconfig {
  readonly clusters: readonly { cluster: { 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

interface ApiResponse {
  readonly status: number
  readonly text: string
  /** Ended by a reset or a closed connection instead of a regular end of stream. */
  readonly broken: boolean
}

/** The time after which kubelet kills a pod, unless the spec of the pod says otherwise. */
const gracePeriodMs = 30_000

const secrets = '/clusters/root/api/v1/namespaces/default/secrets'

describe('SIGTERM', function () {
  this.timeout(180_000)
  let dir: string
  let port: number
  let kcp: ManagedProcess

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-shutdown-'))
    port = await freePort()
    const flags = ['--disable-warning=ExperimentalWarning', '--max-http-header-size=262144']
    kcp = await startProcess({
      name: `kcp-shutdown-${port}`,
      command: process.execPath,
      args: [...flags, join(repositoryRoot, 'src/cli/main.ts'), 'start', '--root-dir', dir, '--port', String(port)],
      ready: async () => existsSync(join(dir, 'admin.kubeconfig')) && (await isReady()),
    })
  })
  afterEach(async () => {
    await kcp[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  function session(): ClientHttp2Session {
    const { clusters, users } = parse(readFileSync(join(dir, 'admin.kubeconfig'), 'utf8')) as Kubeconfig
    const decode = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64')
    const opened = connect(`https://127.0.0.1:${port}`, {
      ca: decode(clusters[0]?.cluster['certificate-authority-data']),
      cert: decode(users[0]?.user['client-certificate-data']),
      key: decode(users[0]?.user['client-key-data']),
    })
    opened.on('error', () => undefined)
    return opened
  }

  async function isReady(): Promise<boolean> {
    const over = session()
    const { status } = await ask(over, '/readyz').answer
    over.destroy()
    return status === 200
  }

  /** `begun` resolves when the headers of the answer have arrived, `answer` at its end. */
  function ask(
    over: ClientHttp2Session,
    path: string,
    body?: object,
  ): { begun: Promise<void>; answer: Promise<ApiResponse> } {
    const method = body === undefined ? 'GET' : 'POST'
    const stream = over.request({ ':method': method, ':path': path, 'content-type': 'application/json' })
    let [status, text, broken] = [0, '', true]
    const begun = new Promise<void>((resolve) => {
      stream.once('response', (headers) => {
        status = Number(headers[':status'])
        resolve()
      })
    })
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => (text += chunk))
    stream.on('end', () => (broken = stream.rstCode !== 0))
    stream.on('error', () => (broken = true))
    const answer = new Promise<ApiResponse>((resolve) => stream.once('close', () => resolve({ status, text, broken })))
    if (body === undefined) stream.end()
    else stream.end(JSON.stringify(body))
    return { begun, answer }
  }

  it('makes kcp end 500 watches and the writes in progress cleanly, exit 0 before kubelet would kill it, and keep every acknowledged write', async () => {
    const sessions = Array.from({ length: 10 }, session)
    const watches = sessions.flatMap((over) => Array.from({ length: 50 }, () => ask(over, `${secrets}?watch=1`)))
    await Promise.all(watches.map(({ begun }) => begun))
    const acknowledged: string[] = []
    const refused: number[] = []
    let stopping = false
    const writers = Array.from({ length: 20 }, async (_, writer) => {
      const over = session()
      for (let n = 0; !over.closed && !over.destroyed; n++) {
        const name = `w${writer}-${n}`
        const { status, broken } = await ask(over, secrets, { metadata: { name } }).answer
        if (status === 201) acknowledged.push(name)
        else {
          if (status !== 0) refused.push(status)
          if (broken || stopping) return
        }
        if (stopping && status !== 201) return
      }
    })
    while (acknowledged.length < 100) await Promise.race([...writers, new Promise((resolve) => setImmediate(resolve))])
    stopping = true
    const began = performance.now()
    const { code } = await kcp.stop()
    expect(performance.now() - began, 'milliseconds').to.be.below(gracePeriodMs)
    expect(code, kcp.log()).to.equal(0)
    const ended = await Promise.all(watches.map(({ answer }) => answer))
    expect(ended.filter(({ broken }) => broken).length, 'watches that were cut off').to.equal(0)
    for (const { text } of ended) expect(text.endsWith('\n'), text.slice(-100)).to.equal(true)
    await Promise.all(writers)
    expect(refused.filter((status) => status !== 503)).to.deep.equal([])
    for (const over of sessions) over.destroy()

    await kcp.start()
    const over = session()
    const list = await ask(over, secrets).answer
    const names = new Set(
      (JSON.parse(list.text) as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name),
    )
    expect(acknowledged.filter((name) => !names.has(name))).to.deep.equal([])
    over.destroy()
  })
})
