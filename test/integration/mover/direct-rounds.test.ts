// Rounds that the operator starts from pod to pod where it may: what they do if the address leads nowhere, or to somebody
// who is not the mover of the source.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { issueMoverCredentials, type PartyCredentials, type RoundMode, type RoundResult } from '#mover/index.ts'
import { startMover } from '#mover/program/index.ts'
import { Rounds, type MoveState, type Ways } from '#operator/volumes/rounds.ts'
import { silentLogger } from '#telemetry/index.ts'
import { freePort, waitFor } from '#test/support/index.ts'
import { dialPort } from './mover-pair.ts'

describe('a round between members whose pods reach each other', () => {
  const stack = new AsyncDisposableStack()
  const ended = new Map<string, () => void>()
  let root: string
  let rounds: Rounds
  let ports: { readonly source: number; readonly target: number }
  let [dialled, changes, nowMs] = [0, 0, 0]
  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'kcp-direct-'))
    stack.defer(() => rmSync(root, { recursive: true, force: true }))
    for (const folder of ['source', 'target']) mkdirSync(join(root, folder))
    const life = new AbortController()
    stack.defer(() => life.abort())
    rounds = stack.use(new Rounds(life.signal, (move) => ended.get(move)?.(), { now: () => nowMs }))
    const credentials = await rounds.credentialsOf('move-1')
    const start = async (role: 'source' | 'target'): Promise<number> => {
      const options = { role, volume: join(root, role), block: false, credentials: credentials[role] }
      return stack.use(await startMover({ ...options, host: '127.0.0.1', port: 0, log: silentLogger })).port
    }
    ports = { source: await start('source'), target: await start('target') }
  })
  after(() => stack.disposeAsync())

  /** Starts a round; resolves once it is over. */
  const start = (
    { direct, target = dialPort(ports.target) }: Pick<Ways, 'direct'> & Partial<Pick<Ways, 'target'>>,
    mode: RoundMode = 'copy',
  ): Promise<void> => {
    const over = new Promise<void>((resolve) => ended.set('move-1', resolve))
    rounds.start('move-1', { mode }, { source: dialPort(ports.source), target, direct })
    return over
  }
  /** Runs a round after a change; resolves with how it ended, and how often the operator dialled the source. */
  const run = async (
    direct: Ways['direct'],
    mode: RoundMode = 'final',
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
    rounds.start('move-1', { mode }, ways)
    await over
    const seconds = (performance.now() - since) / 1000
    const end = state.ended
    delete state.ended
    if (end === undefined || 'error' in end) throw new Error('the round failed', { cause: end?.error })
    expect(readFileSync(join(root, 'target/file'), 'utf8')).to.equal(text)
    expect(end.result.verified).to.equal(mode === 'final' ? true : undefined)
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

  it('goes from pod to pod after a round that the operator ended while it connected', async () => {
    const connected = Promise.withResolvers<Socket>()
    const server = createServer((socket) => connected.resolve(socket.on('error', () => undefined)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
      const over = start({ direct: { address, pod: 'ended' } })
      const socket = await connected.promise
      rounds.stateOf('move-1').round?.end()
      await over
      socket.destroy()
    } finally {
      server.close()
    }
    expect(rounds.stateOf('move-1').ended).to.equal(undefined)
    const { state } = await run({ address: `127.0.0.1:${ports.source}`, pod: 'ended' })
    expect(state.connection?.way).to.equal('Direct')
  })
  it("fails, and goes from pod to pod the next time, if the operator's own way to the target is lost", async () => {
    const address = `127.0.0.1:${ports.source}`
    const direct = { address, pod: 'lost-way' }
    const ways: readonly [string, Ways['target']][] = [
      ['no port-forward', () => Promise.reject(new Error('the API of the member is away'))],
      [
        'a port-forward that ends',
        async (signal) => {
          const stream = await dialPort(ports.target)(signal)
          setTimeout(() => stream.destroy(), 20)
          return stream
        },
      ],
    ]
    for (const [title, target] of ways) {
      const silent = createServer((socket) => void socket.on('error', () => undefined))
      silent.listen(0, '127.0.0.1')
      await once(silent, 'listening')
      const slow = `127.0.0.1:${(silent.address() as AddressInfo).port}`
      await start({ direct: title === 'no port-forward' ? direct : { ...direct, address: slow }, target })
      silent.close()
      const { ended: end } = rounds.stateOf('move-1')
      delete rounds.stateOf('move-1').ended
      expect(end, title).to.have.property('error').that.has.property('code', 'PeerLost')
      // The mover of the target notices that control has gone.
      await waitFor(async () => (await run(direct)).state.connection?.way === 'Direct', {
        ...{ what: `${title} to be mended`, deadlineMs: 10_000 },
      })
    }
  })
  it('tries an address again after ten minutes, and no other one of the pod, and not in the last round', async () => {
    const address = `127.0.0.1:${await freePort()}`
    const other = `127.0.0.1:${ports.source}`
    const wayOf = async (at: string, mode: RoundMode): Promise<string | undefined> =>
      (await run({ address: at, pod: 'again' }, mode)).state.connection?.way
    expect(await wayOf(address, 'copy')).to.equal('Relayed')
    // From now on the mover is there.
    const proxy = createServer((near) => {
      const far = connect(ports.source, '127.0.0.1')
      for (const [one, two] of [
        [near, far],
        [far, near],
      ] as const)
        one.on('error', () => two.destroy()).pipe(two)
    })
    proxy.listen(Number(address.split(':')[1]), '127.0.0.1')
    await once(proxy, 'listening')
    try {
      nowMs += 9 * 60_000
      expect(await wayOf(address, 'copy'), 'after nine minutes').to.equal('Relayed')
      nowMs += 60_000
      expect(await wayOf(other, 'copy'), 'another address').to.equal('Relayed')
      expect(await wayOf(address, 'final'), 'the last round').to.equal('Relayed')
      expect(await wayOf(address, 'copy'), 'after ten minutes').to.equal('Direct')
      expect(await wayOf(address, 'final'), 'once it was reached').to.equal('Direct')
    } finally {
      proxy.close()
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
