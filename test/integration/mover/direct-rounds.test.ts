// Rounds that the operator starts from pod to pod where it may: what they do if the address leads nowhere, or to somebody
// who is not the mover of the source.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { issueMoverCredentials, type PartyCredentials, type RoundResult } from '#mover/index.ts'
import { startMover } from '#mover/program/index.ts'
import { Rounds, type MoveState, type Ways } from '#operator/volumes/rounds.ts'
import { silentLogger } from '#telemetry/index.ts'
import { freePort } from '#test/support/index.ts'
import { dialPort } from './mover-pair.ts'

describe('a round between members whose pods reach each other', () => {
  const stack = new AsyncDisposableStack()
  const ended = new Map<string, () => void>()
  let root: string
  let rounds: Rounds
  let ports: { readonly source: number; readonly target: number }
  let [dialled, changes] = [0, 0]
  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'kcp-direct-'))
    stack.defer(() => rmSync(root, { recursive: true, force: true }))
    for (const folder of ['source', 'target']) mkdirSync(join(root, folder))
    const life = new AbortController()
    stack.defer(() => life.abort())
    rounds = stack.use(new Rounds(life.signal, (move) => ended.get(move)?.()))
    const credentials = await rounds.credentialsOf('move-1')
    const start = async (role: 'source' | 'target'): Promise<number> => {
      const options = { role, volume: join(root, role), block: false, credentials: credentials[role] }
      return stack.use(await startMover({ ...options, host: '127.0.0.1', port: 0, log: silentLogger })).port
    }
    ports = { source: await start('source'), target: await start('target') }
  })
  after(() => stack.disposeAsync())

  /** Runs a round after a change; resolves with how it ended, and how often the operator dialled the source. */
  const run = async (
    direct: Ways['direct'],
  ): Promise<{ state: MoveState; dials: number; result: RoundResult; seconds: number }> => {
    const state = rounds.stateOf('move-1')
    const text = `change ${++changes}`
    writeFileSync(join(root, 'source/file'), text)
    dialled = 0
    const over = new Promise<void>((resolve) => ended.set('move-1', resolve))
    const source = dialPort(ports.source)
    const ways = {
      source: (signal: AbortSignal) => {
        dialled++
        return source(signal)
      },
      target: dialPort(ports.target),
      direct,
    }
    const since = performance.now()
    rounds.start('move-1', { mode: 'final' }, ways)
    await over
    const seconds = (performance.now() - since) / 1000
    const end = state.ended
    delete state.ended
    if (end === undefined || 'error' in end) throw new Error('the round failed', { cause: end?.error })
    expect(readFileSync(join(root, 'target/file'), 'utf8')).to.equal(text)
    expect(end.result.verified).to.equal(true)
    return { state, dials: dialled, result: end.result, seconds }
  }

  it('goes from pod to pod, and not through the operator', async () => {
    const address = `127.0.0.1:${ports.source}`
    const pod = 'source'
    const first = await run({ address, pod })
    expect(first.state.connection).to.deep.equal({ way: 'Direct', message: `the mover is reached at ${address}` })
    // The survey is asked for once.
    expect(first.dials).to.equal(1)
    expect((await run({ address, pod })).dials).to.equal(0)
  })
  it('is relayed where pods do not reach each other, and says why', async () => {
    const { state, dials } = await run({
      whyNot: 'pods of member cluster "east" have service network "None", not Flat',
    })
    expect(dials).to.equal(1)
    expect(state.connection).to.deep.equal({
      way: 'Relayed',
      message: 'pods of member cluster "east" have service network "None", not Flat',
    })
  })
  it('is relayed if nothing listens at the address, until the source has another pod', async () => {
    const direct = `127.0.0.1:${ports.source}`
    for (const address of [`127.0.0.1:${await freePort()}`, direct]) {
      const { state, dials } = await run({ address, pod: 'lost' })
      expect(dials).to.equal(1)
      expect(state.connection?.way).to.equal('Relayed')
      expect(state.connection?.message).to.match(
        /^not direct: the source is not reached at 127.0.0.1:\d+: .*ECONNREFUSED/,
      )
    }
    expect((await run({ address: direct, pod: 'another' })).state.connection?.way).to.equal('Direct')
  })
  it('is relayed within seconds if the address takes connections and says nothing', async () => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => void sockets.add(socket.on('error', () => undefined)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
      const { state } = await run({ address, pod: 'silent' })
      expect(state.connection?.way).to.equal('Relayed')
      expect(state.connection?.message).to.match(/^not direct: no TLS connection with the source/)
    } finally {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  })

  const forgers: readonly [string, () => Promise<PartyCredentials>][] = [
    ['the same names from another CA', async () => (await issueMoverCredentials('move-1')).source],
    ['the source of another move', async () => (await issueMoverCredentials('move-2')).source],
    ['the target of this move', async () => (await rounds.credentialsOf('move-1')).target],
    ['the control of this move', async () => (await rounds.credentialsOf('move-1')).control],
  ]
  for (const [title, credentialsOf] of forgers)
    it(`sends nothing to a forger with ${title}, and is relayed to the true source`, async () => {
      const { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca } = await credentialsOf()
      const options = { cert, key, ca, requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.3' } as const
      const server = createTlsServer({ ...options, ALPNProtocols: ['kcp-mover'] })
      let heard = 0
      server.on('secureConnection', (socket: TLSSocket) => {
        socket.on('data', (chunk: Buffer) => (heard += chunk.length)).on('error', () => undefined)
      })
      server.on('tlsClientError', () => undefined)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
        const { state, dials } = await run({ address, pod: title })
        expect(state.connection?.way).to.equal('Relayed')
        expect(state.connection?.message).to.match(/^not direct: /)
        expect(dials).to.equal(1)
        expect(heard).to.equal(0)
      } finally {
        server.close()
      }
    })
})
