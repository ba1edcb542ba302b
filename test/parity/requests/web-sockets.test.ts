// Watches over WebSockets compared with a real kube-apiserver: handshake, frames and end.
import { expect } from 'chai'
import { framesOf } from '#test/integration/web-socket-frames.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'
import { Normaliser } from './normalise.ts'
import { openServer, type Sent, type Server } from './wire.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  Origin: 'https://127.0.0.1',
}
const compared = ['connection', 'upgrade', 'sec-websocket-accept', 'sec-websocket-protocol']
const only = 'labelSelector=socket&timeoutSeconds=1'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** `why`: the reason of a known difference. */
const openings: readonly { title: string; query: string; headers?: Record<string, string>; why?: string }[] = [
  { title: 'from the current revision', query: 'watch=true' },
  { title: 'bookmarks', query: 'watch=true&allowWatchBookmarks=true' },
  {
    title: 'a list as a stream',
    query: 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
  },
  { title: 'as a table', query: 'watch=true', headers: { Accept: table } },
  { title: 'an unknown subprotocol', query: 'watch=true', headers: { 'Sec-WebSocket-Protocol': 'chat' } },
  { title: 'an unsupported field selector', query: 'watch=true&fieldSelector=data.x%3Dy' },
  { title: 'sendInitialEvents without resourceVersionMatch', query: 'watch=true&sendInitialEvents=true' },
  {
    title: 'an invalid revision',
    query: 'watch=true&resourceVersion=1.5',
    why: 'a real server answers 500 to a mistake of the client',
  },
  {
    title: 'a list instead of a watch',
    query: '',
    why: 'a real server ignores the upgrade; ours refuses it',
  },
]

describe('watches over WebSockets compared with kube-apiserver 1.34.3', () => {
  const stack = new AsyncDisposableStack()
  let servers: TwoServers
  let real: Server
  let ours: Server
  let base: string

  before(async () => {
    servers = stack.use(await startTwoServers({ name: 'sockets' }))
    real = stack.use(openServer(servers.real.kubeconfig))
    ours = stack.use(openServer(servers.ours.kubeconfig))
    base = '/clusters/parity'
    const body = Buffer.from(JSON.stringify({ metadata: { name: 'a', labels: { socket: 'a' } } }))
    for (const server of [real, ours])
      await server.send({ method: 'POST', path: maps, headers: { 'Content-Type': 'application/json' }, body })
  })
  after(() => stack.disposeAsync())

  /** Returns the handshake and all frames until the server closes. */
  const played = async (server: Server, sent: Sent, ownBase: string): Promise<unknown> => {
    const normaliser = new Normaliser(ownBase)
    const { answer, socket } = await server.upgrade(sent)
    if (socket === undefined) {
      const { status, body } = normaliser.answer(answer)
      return { status, body }
    }
    const frames: unknown[] = []
    for await (const { opcode, payload } of framesOf(socket)) {
      const [event] =
        opcode === 1 ? (normaliser.answer(answer, [payload.toString()]).events ?? []) : [payload.toString('hex')]
      // Bookmarks may come at any time.
      if (event !== undefined) frames.push({ opcode, event })
      if (opcode === 8) break
    }
    socket.destroy()
    const headers = Object.fromEntries(
      compared.map((name) => [name, answer.headers.get(name)?.map((value) => value.toLowerCase())]),
    )
    return { status: answer.status, headers, frames }
  }

  for (const { title, query, headers = {}, why } of openings)
    it(title, async () => {
      const path = `${maps}?${only}${query === '' ? '' : `&${query}`}`
      const sent = { method: 'GET', path, headers: { ...handshake, ...headers }, body: undefined }
      const [theirs, answer] = await Promise.all([played(real, sent, ''), played(ours, sent, base)])
      if (why === undefined) expect(answer).to.deep.equal(theirs)
      else expect(answer, `"${title}" is listed as different (${why}) and is not any more`).to.not.deep.equal(theirs)
    })
})
