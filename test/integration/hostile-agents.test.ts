// Agents that do not keep to the protocol of their tunnel: the server, and the tunnels of others, go on.
import { expect } from 'chai'
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { WebSocket } from 'ws'
import { connectToMember } from '#client/member/index.ts'
import { duplexOf, sessionKinds, type SessionKind } from '#network/tunnel/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createMembers } from '#virtualapi/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startServedApi, type ServedApi } from './served-api.ts'
import { registerInPullMode, type TunnelledMember } from './tunnelled-member.ts'

interface OpenTunnel {
  readonly webSocket: WebSocket
  readonly stream: Duplex
}

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const mib = 1024 * 1024

describe('an agent that does not keep to the protocol', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let served: ServedApi
  let members = 0

  before(async () => {
    served = stack.use(
      await startServedApi({
        members: ({ loopback, dialer }) =>
          createMembers({ transport: loopback, basePath: '/clusters/root', dialer, log: silentLogger, signal }),
      }),
    )
    stack.defer(() => life.abort())
  })
  after(() => stack.disposeAsync())
  afterEach(async () => {
    expect((await served.root.list(namespaces, { signal })).items).to.not.be.empty
  })

  const open = async (member: TunnelledMember, kind: SessionKind = 'control'): Promise<OpenTunnel> => {
    const { name, certificate: cert, key } = member
    const url = `wss://127.0.0.1:${served.port}/services/agent/${name}/tunnel?session=${kind}`
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const webSocket = new WebSocket(url, { cert, key, ca: served.pki.servingCa, perMessageDeflate: false })
    const stream = duplexOf(webSocket)
    stream.on('error', () => undefined)
    webSocket.once('open', () => resolve(undefined)).on('error', reject)
    await promise
    return { webSocket, stream }
  }
  const nextMember = (): Promise<TunnelledMember> =>
    registerInPullMode(`hostile-${++members}`, { clusters: served.root, pki: served.pki, signal })

  /** A member whose agent treats each connection so. */
  const agentThat = async (
    treats: (stream: ServerHttp2Stream, session: ServerHttp2Session) => void,
  ): Promise<TunnelledMember> => {
    const member = await nextMember()
    for (const kind of sessionKinds) {
      const session = performServerHandshake((await open(member, kind)).stream)
      session.on('error', () => undefined)
      session.on('stream', (stream) => {
        stream.on('error', () => undefined)
        treats(stream, session)
      })
    }
    return member
  }
  /** The error of a request to the member. */
  const errorOf = async (member: TunnelledMember): Promise<string> => {
    const options = { responseTimeoutMs: 1500, dialer: served.api.dialer }
    await using connection = await connectToMember({ kind: 'agent', member }, options)
    return await connection.client.list(namespaces, { signal }).then(
      () => 'none',
      (error: unknown) => String(error),
    )
  }
  const answer = (stream: ServerHttp2Stream, text: string): void => {
    stream.respond({ ':status': 200 })
    stream.once('data', () => stream.write(text))
  }
  const ok = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'

  for (const { title, treats, error } of [
    {
      title: 'refuses all connections',
      treats: (stream: ServerHttp2Stream) => stream.respond({ ':status': 403 }, { endStream: true }),
      error: 'could not GET',
    },
    {
      title: 'never answers',
      treats: (stream: ServerHttp2Stream) => stream.respond({ ':status': 200 }),
      error: 'no answer in time',
    },
    {
      title: 'answers with headers of a megabyte',
      treats: (stream: ServerHttp2Stream) => answer(stream, `${ok}x: ${'y'.repeat(mib)}\r\n\r\n{}`),
      error: 'could not GET',
    },
    {
      title: 'answers without an end',
      treats: (stream: ServerHttp2Stream) => {
        answer(stream, `${ok}transfer-encoding: chunked\r\n\r\n`)
        const chunk = `${(64 * 1024).toString(16)}\r\n${' '.repeat(64 * 1024)}\r\n`
        const more = (): void => {
          while (!stream.destroyed && stream.write(chunk));
        }
        stream.once('data', () => setImmediate(more))
        stream.on('drain', more)
      },
      error: 'larger than',
    },
    {
      title: 'answers with a redirect',
      treats: (stream: ServerHttp2Stream) =>
        answer(stream, 'HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1/\r\ncontent-length: 0\r\n\r\n'),
      error: 'redirect',
    },
    {
      title: 'ends its session on each connection',
      treats: (_: ServerHttp2Stream, session: ServerHttp2Session) => session.destroy(),
      error: 'could not GET',
    },
  ])
    it(`only fails its own requests: it ${title}`, async () => {
      expect(await errorOf(await agentThat(treats))).to.include(error)
    })

  it('is cut off when it speaks no HTTP/2', async () => {
    const member = await nextMember()
    const { webSocket } = await open(member)
    const closed = new Promise<void>((resolve) => webSocket.once('close', () => resolve()))
    webSocket.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(100)))
    await closed
  })

  it('is cut off when it sends a message that is too large', async () => {
    const { webSocket } = await open(await nextMember())
    webSocket.on('error', () => undefined)
    const closed = new Promise<void>((resolve) => webSocket.once('close', () => resolve()))
    webSocket.send(Buffer.alloc(9 * mib))
    await closed
  })

  it('holds a few sessions only, however often it connects', async () => {
    const member = await nextMember()
    const all = await Promise.all(Array.from({ length: 12 }, () => open(member)))
    for (const { stream } of all) performServerHandshake(stream).on('error', () => undefined)
    const isOpen = ({ webSocket }: OpenTunnel): boolean => webSocket.readyState === WebSocket.OPEN
    await waitFor(() => all.filter(isOpen).length === 4, { what: 'the others to end', deadlineMs: 5000 })
  })
})
