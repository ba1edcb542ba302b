// Movers against peers that are not theirs, or that do not keep to the protocol.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createTlsServer, connect as connectTls, type TLSSocket } from 'node:tls'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createCertificateAuthority, signCertificate } from '#network/certificates/index.ts'
import {
  createMoverControl,
  issueMoverCredentials,
  MoverError,
  protocolVersion,
  type MoverControl,
  type PartyCredentials,
} from '#mover/index.ts'
import { startMover, type Mover } from '#mover/program/index.ts'
import { ByteReader, ByteWriter } from '#mover/wire/bytes.ts'
import { frameTypes, FrameStream, type FrameType } from '#mover/wire/frames.ts'
import { silentLogger } from '#telemetry/index.ts'
import { dialPort } from './mover-pair.ts'

const never = new AbortController().signal
const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) }

/** Credentials with any names, from one CA. */
async function authority() {
  const ca = await createCertificateAuthority({ commonName: 'test', ...validity })
  return async (names: { uris?: readonly string[]; dnsNames?: readonly string[] }): Promise<PartyCredentials> => {
    const subject = { commonName: 'a party' }
    const { certificate, key } = await signCertificate(ca, { subject, usage: 'peer', ...names, ...validity })
    return { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': ca.certificate }
  }
}

const uriOf = (party: string): { uris: readonly string[] } => ({ uris: [`kcp://mover/move-1/${party}`] })

describe('a mover', () => {
  let root: string
  let issue: Awaited<ReturnType<typeof authority>>
  let control: PartyCredentials
  before(async () => {
    issue = await authority()
    control = await issue(uriOf('control'))
  })
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'kcp-mover-'))
    for (const folder of ['source', 'target', 'outside']) mkdirSync(join(root, folder))
    writeFileSync(join(root, 'outside/secret'), 'secret')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const start = async (role: 'source' | 'target', silenceMs = 60_000): Promise<Mover> =>
    startMover({
      role,
      volume: join(root, role),
      block: false,
      credentials: await issue(uriOf(role)),
      host: '127.0.0.1',
      port: 0,
      log: silentLogger,
      silenceMs,
    })
  const controlOf = (mover: Mover, role: 'source' | 'target', credentials = control): MoverControl =>
    createMoverControl({ credentials, role, dial: dialPort(mover.port), timeoutMs: 5000 })

  /** The raw answer to GET /status with these credentials. */
  const ask = async (mover: Mover, credentials: Partial<PartyCredentials>, protocol: string): Promise<string> => {
    const { 'tls.crt': cert, 'tls.key': key } = credentials
    const socket = connectTls({
      port: mover.port,
      host: '127.0.0.1',
      cert,
      key,
      rejectUnauthorized: false,
      ALPNProtocols: [protocol],
    })
    socket.on('error', () => undefined)
    socket.write('GET /status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    await new Promise((resolve) => socket.once('close', resolve))
    return text
  }

  it('answers control of its own move alone', async () => {
    await using mover = await start('source')
    expect(await ask(mover, control, 'http/1.1')).to.include('200 OK')
    const foreign = await issueMoverCredentials('move-1')
    const forged: readonly [string, Partial<PartyCredentials>][] = [
      ['no certificate', {}],
      ['another CA', foreign.control],
      ...(await Promise.all(
        [
          ['another move', { uris: ['kcp://mover/move-2/control'] }],
          ['a longer name', { uris: ['kcp://mover/move-10/control'] }],
          ['a shorter name', { uris: ['kcp://mover/move-/control'] }],
          ['another role', uriOf('target')],
          ['its own role', uriOf('source')],
          ['a prefix', { uris: ['kcp://mover/move-1/control/x'] }],
          ['a slash more', { uris: ['kcp://mover/move-1/control/'] }],
          ['other case', { uris: ['kcp://mover/move-1/Control'] }],
          ['another scheme', { uris: ['KCP://mover/move-1/control'] }],
          ['an encoded letter', { uris: ['kcp://mover/move-1/contro%6c'] }],
          ['two identities', { uris: ['kcp://mover/move-1/target', 'kcp://mover/move-1/control'] }],
          ['a second name', { ...uriOf('control'), dnsNames: ['control'] }],
          ['a DNS name', { dnsNames: ['kcp.mover.move-1.control'] }],
          ['no name', {}],
        ].map(async ([title, names]) => [title, await issue(names as object)] as [string, PartyCredentials]),
      )),
    ]
    for (const [title, credentials] of forged) expect(await ask(mover, credentials, 'http/1.1'), title).to.equal('')
    // The protocol of the target is no way around.
    for (const party of ['control', 'source'])
      expect(await ask(mover, await issue(uriOf(party)), 'kcp-mover')).to.equal('')
    expect(await ask(mover, await issue(uriOf('target')), 'http/1.1')).to.equal('')
  })
  it('is refused by control if it is not the one that is asked for', async () => {
    await using mover = await start('source')
    const other = await issueMoverCredentials('move-1')
    for (const [title, asked] of [
      ['another CA', controlOf(mover, 'source', other.control)],
      ['another move', controlOf(mover, 'source', await issue({ uris: ['kcp://mover/move-2/control'] }))],
      ['the other role', controlOf(mover, 'target')],
    ] as const) {
      const error = await asked.status(never).catch((reason: unknown) => reason)
      expect(error, title).to.be.instanceOf(MoverError).with.property('code', 'PeerRefused')
    }
  })
  it('does not start with the credentials of another party', async () => {
    const credentials = await issue(uriOf('control'))
    const options = { volume: root, block: false, host: '127.0.0.1', port: 0, log: silentLogger }
    const error = await startMover({ ...options, role: 'source', credentials }).catch((reason: unknown) => reason)
    expect(String(error)).to.include('credentials are those of control')
  })

  describe('as the target', () => {
    /** A source that is not ours, with a good certificate unless another is given. */
    const fakeSource = async (play: (frames: FrameStream) => Promise<void>, party = 'source') => {
      const { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca } = await issue(uriOf(party))
      const server = createTlsServer({
        cert,
        key,
        ca,
        requestCert: true,
        minVersion: 'TLSv1.3',
        ALPNProtocols: ['kcp-mover'],
      })
      server.on('secureConnection', (socket: TLSSocket) => {
        const frames = new FrameStream(socket)
        void play(frames)
          .catch(() => undefined)
          .then(async () => {
            for await (const frame of frames.frames()) frame
          })
          .catch(() => undefined)
          .finally(() => frames[Symbol.dispose]())
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return {
        address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
        [Symbol.dispose]: () => void server.close(),
      }
    }
    const hello = (): Buffer => new ByteWriter().u16(protocolVersion).u8(0).size(0).u8(0).size(0).size(0).take()
    const entry = (
      to: ByteWriter,
      name: string | Buffer,
      kind: number,
      more: (to: ByteWriter) => unknown = () => 0,
    ): ByteWriter => {
      const bytes = Buffer.from(name as string)
      to.u8(1).u8(bytes.length).raw(bytes).u8(kind).u16(0o644).u32(0).u32(0)
      to.signed(5).u32(0).signed(5).u32(0).u8(0).u32(0)
      more(to)
      return to.u16(0)
    }
    const [directory, file, symlink] = [0, 1, 2]
    const rootEntry = (): ByteWriter => entry(new ByteWriter(), '', directory)
    const sized = (to: ByteWriter): unknown => to.size(10)
    const send = (type: FrameType, body: Buffer) => async (frames: FrameStream) => {
      await frames.send(frameTypes.hello, hello())
      await frames.send(type, body)
    }
    const entries = (to: ByteWriter): ((frames: FrameStream) => Promise<void>) => send(frameTypes.entries, to.take())
    const raw = (bytes: Buffer) => async (frames: FrameStream) => {
      await frames.send(frameTypes.hello, hello())
      await frames.send(bytes[4] as FrameType, bytes.subarray(5))
    }

    const cases: readonly [string, (frames: FrameStream) => Promise<void>][] = [
      ['the name ..', entries(entry(rootEntry(), '..', file, sized))],
      ['the name .', entries(entry(rootEntry(), '.', directory))],
      ['a path for a name', entries(entry(rootEntry(), '../outside/secret', file, sized))],
      ['an absolute name', entries(entry(rootEntry(), '/etc/x', file, sized))],
      ['an empty name', entries(entry(rootEntry(), '', file, sized))],
      ['a name with NUL', entries(entry(rootEntry(), 'a\0b', file, sized))],
      ['lost+found', entries(entry(rootEntry(), 'lost+found', directory))],
      ['an entry before the volume', entries(entry(new ByteWriter(), 'x', file, sized))],
      ['a volume that is a link', entries(entry(new ByteWriter(), '', symlink, (to) => to.bytes16(Buffer.from('/'))))],
      ['an unknown kind', entries(entry(rootEntry(), 'x', 9))],
      ['a cut entry', entries(new ByteWriter().u8(1).u8(200).raw(Buffer.from('x')))],
      ['a size beyond all', entries(entry(rootEntry(), 'x', file, (to) => to.u32(0xffffffff).u32(0xffffffff)))],
      ['too many ends', entries(rootEntry().u8(0).u8(0))],
      [
        'folders without end',
        async (frames) => {
          await frames.send(frameTypes.hello, hello())
          const to = rootEntry()
          for (let i = 0; i < 1100; i++) entry(to, 'd', directory)
          await frames.send(frameTypes.entries, to.take())
        },
      ],
      [
        'more entries than there is room for',
        async (frames) => {
          await frames.send(frameTypes.hello, hello())
          const to = rootEntry()
          while (to.length < 60_000) entry(to, `f${to.length}`, symlink, (at) => at.bytes16(Buffer.from('x')))
          const body = to.take()
          for (let i = 0; i < 40; i++) frames.sendNow(frameTypes.entries, body)
        },
      ],
      [
        'content that nobody asked for',
        send(frameTypes.data, new ByteWriter().u32(7).size(0).raw(Buffer.from('x')).take()),
      ],
      [
        'a digest that nobody asked for',
        send(frameTypes.digest, new ByteWriter().u32(1).u8(0).raw(Buffer.alloc(32)).take()),
      ],
      ['an unknown frame', raw(Buffer.from([0, 0, 0, 0, 99, 1, 2, 3, 4]))],
      [
        'another version',
        async (frames) => frames.send(frameTypes.hello, new ByteWriter().u16(77).raw(hello()).take()),
      ],
      ['entries before its greeting', async (frames) => frames.send(frameTypes.entries, rootEntry().take())],
      [
        'content beyond the end of its file',
        async (frames) => {
          await frames.send(frameTypes.hello, hello())
          await frames.send(frameTypes.entries, entry(rootEntry(), 'x', file, sized).u8(0).take())
          for await (const { type, body } of frames.frames()) {
            if (type !== frameTypes.want) continue
            const number = new ByteReader(body).u32()
            await frames.send(frameTypes.begin, new ByteWriter().u32(number).size(10).signed(5).u32(0).take())
            await frames.send(
              frameTypes.data,
              new ByteWriter()
                .u32(number)
                .size(2 ** 50)
                .raw(Buffer.from('x'))
                .take(),
            )
          }
        },
      ],
      [
        'a pass with less than it announces',
        async (frames) => {
          await frames.send(frameTypes.hello, hello())
          await frames.send(frameTypes.entries, rootEntry().u8(0).take())
          await frames.send(frameTypes.passed, new ByteWriter().u32(5).size(0).take())
        },
      ],
    ]
    it('refuses a source that does not keep to the protocol, and touches nothing outside of its volume', async () => {
      await using mover = await start('target')
      for (const [title, play] of cases) {
        using source = await fakeSource(play)
        const error = await controlOf(mover, 'target')
          .round({ mode: 'copy', source: { address: source.address } }, () => undefined, AbortSignal.timeout(10_000))
          .catch((reason: unknown) => reason)
        expect(error, title).to.be.instanceOf(MoverError)
        expect((error as MoverError).code, `${title}: ${String(error)}`).to.be.oneOf([
          'ProtocolViolated',
          'Unsupported',
        ])
      }
      expect(readdirSync(root).sort()).to.deep.equal(['outside', 'source', 'target'])
      expect(readdirSync(join(root, 'outside'))).to.deep.equal(['secret'])
      expect(readFileSync(join(root, 'outside/secret'), 'utf8')).to.equal('secret')
    })
    it('refuses a source with another identity', async () => {
      await using mover = await start('target')
      for (const party of ['target', 'control', 'source2', 'Source']) {
        using source = await fakeSource(async () => undefined, party)
        const error = await controlOf(mover, 'target')
          .round({ mode: 'copy', source: { address: source.address } }, () => undefined, never)
          .catch((reason: unknown) => reason)
        expect(error, party).to.have.property('code', 'Unreached')
        expect(error, party).to.have.property('message').that.includes('is not the source of "move-1"')
      }
    })
    it('ends a round whose source falls silent', async () => {
      await using mover = await start('target', 400)
      using source = await fakeSource(async (frames) => {
        await frames.send(frameTypes.hello, hello())
        // Without pings.
        frames[Symbol.dispose] = () => undefined
        await new Promise(() => undefined)
      })
      const error = await controlOf(mover, 'target')
        .round({ mode: 'copy', source: { address: source.address } }, () => undefined, never)
        .catch((reason: unknown) => reason)
      // The stream of the fake source sends pings as long as it lives, and hears nothing itself.
      expect(error).to.have.property('code').that.is.oneOf(['PeerLost', 'ProtocolViolated'])
    })
    it('follows no link that is in its way', async () => {
      symlinkSync(join(root, 'outside'), join(root, 'target/folder'))
      symlinkSync(join(root, 'outside/secret'), join(root, 'target/file'))
      mkdirSync(join(root, 'source/folder'))
      writeFileSync(join(root, 'source/folder/secret'), 'other')
      writeFileSync(join(root, 'source/file'), 'other')
      await using source = await start('source')
      await using target = await start('target')
      const address = `127.0.0.1:${source.port}`
      await controlOf(target, 'target').round({ mode: 'final', source: { address } }, () => undefined, never)
      expect(readFileSync(join(root, 'outside/secret'), 'utf8')).to.equal('secret')
      expect(readFileSync(join(root, 'target/folder/secret'), 'utf8')).to.equal('other')
    })
  })

  describe('as the source', () => {
    const dial = async (mover: Mover): Promise<FrameStream> => {
      const { 'tls.crt': cert, 'tls.key': key } = await issue(uriOf('target'))
      const socket = connectTls({
        port: mover.port,
        host: '127.0.0.1',
        cert,
        key,
        rejectUnauthorized: false,
        ALPNProtocols: ['kcp-mover'],
      })
      await once(socket, 'secureConnect')
      return new FrameStream(socket)
    }
    const hello = (): Buffer => new ByteWriter().u16(protocolVersion).size(0).take()
    const want = (path: string, number = 1): Buffer => new ByteWriter().u32(number).u8(0).raw(Buffer.from(path)).take()

    const cases: readonly [string, (frames: FrameStream) => void][] = [
      ['a path outside', (frames) => frames.sendNow(frameTypes.want, want('../outside/secret'))],
      ['an absolute path', (frames) => frames.sendNow(frameTypes.want, want('/etc/passwd'))],
      ['a path with .. inside', (frames) => frames.sendNow(frameTypes.want, want('folder/../../outside/secret'))],
      ['an empty path', (frames) => frames.sendNow(frameTypes.want, want(''))],
      ['a path with empty names', (frames) => frames.sendNow(frameTypes.want, want('a//b'))],
      ['a path with NUL', (frames) => frames.sendNow(frameTypes.want, want('a\0b'))],
      [
        'a digest of a path outside',
        (frames) =>
          frames.sendNow(frameTypes.want, new ByteWriter().u32(1).u8(2).raw(Buffer.from('../outside/secret')).take()),
      ],
      [
        'a request of an unknown kind',
        (frames) => frames.sendNow(frameTypes.want, new ByteWriter().u32(1).u8(3).raw(Buffer.from('file')).take()),
      ],
      [
        'too many digests',
        (frames) => {
          for (let i = 0; i < 5000; i++)
            frames.sendNow(frameTypes.want, new ByteWriter().u32(i).u8(2).raw(Buffer.from('large')).take())
        },
      ],
      ['a second greeting', (frames) => frames.sendNow(frameTypes.hello, hello())],
      [
        'a pass within a pass',
        (frames) => {
          frames.sendNow(frameTypes.pass, Buffer.from([0]))
          frames.sendNow(frameTypes.pass, Buffer.from([0]))
        },
      ],
      ['credit without end', (frames) => frames.sendNow(frameTypes.credit, new ByteWriter().u32(2 ** 31).take())],
      ['an unknown frame', (frames) => frames.sendNow(99 as FrameType, Buffer.alloc(3))],
      [
        'too many requests',
        (frames) => {
          for (let i = 0; i < 5000; i++) frames.sendNow(frameTypes.want, want('file', i))
        },
      ],
      [
        'one request twice',
        (frames) => {
          for (let i = 0; i < 2; i++)
            frames.sendNow(frameTypes.want, new ByteWriter().u32(3).u8(1).raw(Buffer.from('large')).take())
        },
      ],
    ]
    it('refuses a target that does not keep to the protocol, and reads nothing outside of its volume', async () => {
      writeFileSync(join(root, 'source/file'), 'data')
      writeFileSync(join(root, 'source/large'), Buffer.alloc(3_000_000, 1))
      await using mover = await start('source')
      for (const [title, play] of cases) {
        const frames = await dial(mover)
        frames.sendNow(frameTypes.hello, hello())
        play(frames)
        let seen = ''
        const error = await (async () => {
          for await (const { body } of frames.frames()) seen += body.toString('latin1')
        })().catch((reason: unknown) => reason)
        expect(error, title).to.have.property('code', 'ProtocolViolated')
        expect(seen, title).not.to.include('secret')
        frames[Symbol.dispose]()
      }
      expect(await controlOf(mover, 'source').status(never)).to.include({ role: 'source' })
    })
    it('refuses a frame of absurd size before it arrives', async () => {
      await using mover = await start('source')
      const { 'tls.crt': cert, 'tls.key': key } = await issue(uriOf('target'))
      const socket = connectTls({
        port: mover.port,
        host: '127.0.0.1',
        cert,
        key,
        rejectUnauthorized: false,
        ALPNProtocols: ['kcp-mover'],
      })
      await once(socket, 'secureConnect')
      socket.on('error', () => undefined).resume()
      socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 1]))
      await once(socket, 'close')
    })
    it('gives up a target that takes nothing', async () => {
      writeFileSync(join(root, 'source/large'), Buffer.alloc(60_000_000, 1))
      await using mover = await start('source', 800)
      const { 'tls.crt': cert, 'tls.key': key } = await issue(uriOf('target'))
      const socket = connectTls({
        port: mover.port,
        host: '127.0.0.1',
        cert,
        key,
        rejectUnauthorized: false,
        ALPNProtocols: ['kcp-mover'],
      })
      await once(socket, 'secureConnect')
      socket.on('error', () => undefined)
      const stream = new FrameStream(socket)
      stream.sendNow(frameTypes.hello, hello())
      stream.sendNow(frameTypes.want, want('large'))
      // Nobody reads: the mover ends the connection, which this side sees when it writes.
      const ended = new Promise((resolve) => socket.once('close', resolve))
      const writing = setInterval(() => {
        if (stream.failure === undefined) stream.sendNow(frameTypes.ping, Buffer.alloc(0))
      }, 100)
      await ended
      clearInterval(writing)
    })
    it('reads nothing outside while the application swaps folders and links', async () => {
      const source = join(root, 'source')
      const { renameSync, unlinkSync } = await import('node:fs')
      mkdirSync(join(source, 'd'))
      for (let i = 0; i < 200; i++) writeFileSync(join(source, 'd', `f${i}`), 'data')
      writeFileSync(join(source, 'd/secret'), 'data')
      await using from = await start('source')
      await using to = await start('target')
      // The movers of this test share a process with the swaps: they happen between their slices.
      const swapping = setInterval(() => {
        renameSync(join(source, 'd'), join(source, 'e'))
        symlinkSync(join(root, 'outside'), join(source, 'd'))
        setImmediate(() => {
          unlinkSync(join(source, 'd'))
          renameSync(join(source, 'e'), join(source, 'd'))
        })
      }, 1)
      const address = `127.0.0.1:${from.port}`
      using stack = new DisposableStack()
      stack.defer(() => clearInterval(swapping))
      for (let i = 0; i < 10; i++) {
        await controlOf(to, 'target')
          .round({ mode: 'copy', source: { address }, allowEmpty: true }, () => undefined, never)
          .catch((error: unknown) => expect(error).to.be.instanceOf(MoverError))
        const found = execFileSync('find', [join(root, 'target'), '-type', 'f', '-exec', 'cat', '{}', '+'])
        expect(found.toString()).not.to.include('secret')
      }
    })
  })
})
