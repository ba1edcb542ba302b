// Rounds of movers that meet limits, are ended, or go through a relay; block devices.
import { execFileSync } from 'node:child_process'
import { connect } from 'node:net'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { expect } from 'chai'
import { createMoverControl, dialWithin, issueMoverCredentials, type Dial, type RoundProgress } from '#mover/index.ts'
import { differences } from './compare-trees.ts'
import { MoverProcess } from './mover-process.ts'
import { dialPort, startMoverPair, type MoverPair, type MoverPairOptions } from './mover-pair.ts'

const never = new AbortController().signal
const canMount = process.geteuid?.() === 0

describe('a round of movers', () => {
  let root: string
  let stack: AsyncDisposableStack
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'kcp-mover-'))
    for (const folder of ['source', 'target']) mkdirSync(join(root, folder))
    stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(root, { recursive: true, force: true }))
  })
  afterEach(() => stack.disposeAsync())

  const pairOf = async (options: Partial<MoverPairOptions> = {}): Promise<MoverPair> =>
    stack.use(await startMoverPair({ source: join(root, 'source'), target: join(root, 'target'), ...options }))
  const data = (file: string, bytes: number): void =>
    void execFileSync('dd', [
      'if=/dev/urandom',
      `of=${join(root, file)}`,
      'bs=1M',
      `count=${bytes >> 20}`,
      'status=none',
    ])
  const failureOf = (round: Promise<unknown>): Promise<unknown> =>
    round.then(
      () => undefined,
      (error: unknown) => error,
    )

  it('goes through a relay of control, with TLS from end to end', async () => {
    const pair = await pairOf()
    const warnings: Error[] = []
    const warn = (warning: Error): unknown => warnings.push(warning)
    process.on('warning', warn)
    stack.defer(() => void process.off('warning', warn))
    data('source/file', 5 << 20)
    const relay = await pair.target.relay(never)
    const toSource = connect({ host: '127.0.0.1', port: pair.ports.source })
    let seen = 0
    relay.on('data', (chunk: Buffer) => (seen += chunk.length))
    const piped = Promise.allSettled([pipeline(relay, toSource), pipeline(toSource, relay)])
    const result = await pair.target.round({ mode: 'final', source: { relay: true } }, () => undefined, never)
    expect(result.verified).to.equal(true)
    expect(seen).to.be.greaterThan(100)
    expect(differences(join(root, 'source'), join(root, 'target'))).to.deep.equal([])
    await piped
    expect(warnings).to.deep.equal([])
  })
  it('lasts longer than the time in which its connections must open, through streams that end with their signal', async () => {
    const pair = await pairOf()
    data('source/file', 2 << 20)
    // As a port-forward: the signal ends the stream, also long after it was opened.
    const dial =
      (port: number): Dial =>
      async (signal) => {
        const socket = await dialPort(port)(signal)
        signal.addEventListener('abort', () => socket.destroy(), { once: true })
        return socket
      }
    const [timeoutMs, role] = [500, 'target'] as const
    const credentials = pair.credentials.control
    const control = createMoverControl({ credentials, role, dial: dial(pair.ports.target), timeoutMs })
    const relay = await control.relay(never)
    const toSource = await dialWithin(dial(pair.ports.source), timeoutMs, never)
    const piped = Promise.allSettled([pipeline(relay, toSource), pipeline(toSource, relay)])
    const slow = { mode: 'final', source: { relay: true }, bandwidth: 1 << 20 } as const
    const result = await control.round(slow, () => undefined, never)
    expect(result.verified).to.equal(true)
    expect(result.durationMs).to.be.greaterThan(timeoutMs * 2)
    await piped
    const hanging: Dial = (signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    expect(String(await failureOf(dialWithin(hanging, 50, never)))).to.include('no connection within 50 ms')
  })
  it('is refused while another one runs, ends with its request, and keeps to its bandwidth', async () => {
    const pair = await pairOf()
    data('source/file', 8 << 20)
    const ending = new AbortController()
    const progress: RoundProgress[] = []
    const slow = { mode: 'copy', source: { address: `127.0.0.1:${pair.ports.source}` }, bandwidth: 1 << 20 } as const
    const running = failureOf(pair.target.round(slow, (seen) => progress.push(seen), ending.signal))
    while (progress.length < 2) await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await failureOf(pair.round())).to.have.property('code', 'Busy')
    expect((await pair.target.status(never)).running).to.equal('copy')
    ending.abort()
    await running
    const last = progress.at(-1) as RoundProgress
    expect(last.phase).to.equal('copying')
    expect(last.bytesOnWire)
      .to.be.greaterThan(100_000)
      .and.lessThan((progress.length + 2) * (1 << 20))
    // What was copied counts: the next round continues.
    while ((await pair.target.status(never)).running !== undefined)
      await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await pair.round({ mode: 'final' })).verified).to.equal(true)
  })
  it('says that the source changed if a final round meets a writer', async () => {
    const pair = await pairOf()
    data('source/file', 4 << 20)
    const writing = setInterval(() => writeFileSync(join(root, 'source/log'), String(Math.random()).repeat(1000)), 1)
    stack.defer(() => clearInterval(writing))
    const errors = new Set<unknown>()
    for (let i = 0; i < 5; i++)
      errors.add(((await failureOf(pair.round({ mode: 'final' }))) as { code?: string } | undefined)?.code)
    for (const code of errors) expect(code).to.be.oneOf(['SourceChanged', undefined])
    clearInterval(writing)
    expect((await pair.round({ mode: 'final' })).verified).to.equal(true)
  })
  it('says that the source is lost if it is not there', async () => {
    const pair = await pairOf()
    const error = await failureOf(pair.round({ source: { address: '127.0.0.1:1' } }))
    expect(error).to.include({ code: 'Unreached', isFinal: false })
    expect(await failureOf(pair.round({ source: { address: 'localhost:8443' } }))).to.have.property(
      'code',
      'ProtocolViolated',
    )
  })
  it('says that the target is full, or that it has no inodes left, and goes on once there is room', async function () {
    if (!canMount) this.skip()
    for (const limit of ['size=4m', 'size=100m,nr_inodes=20']) {
      const small = join(root, 'small')
      mkdirSync(small, { recursive: true })
      execFileSync('mount', ['-t', 'tmpfs', '-o', limit, 'tmpfs', small])
      try {
        await using pair = await startMoverPair({ source: join(root, 'source'), target: small })
        data('source/large', 6 << 20)
        for (let i = 0; i < 30; i++) writeFileSync(join(root, `source/f${i}`), 'x')
        const error = await failureOf(pair.round())
        expect(error, limit).to.include({ code: 'TargetFull', isFinal: true })
        execFileSync('mount', ['-o', 'remount,size=100m,nr_inodes=1000', small])
        expect((await pair.round({ mode: 'final' })).verified, limit).to.equal(true)
      } finally {
        execFileSync('umount', [small])
      }
    }
  })
  it('copies a block device by its changed blocks, with zeros as holes', async () => {
    const [source, target] = [join(root, 'source.img'), join(root, 'target.img')]
    data('source.img', 6 << 20)
    truncateSync(source, 40 << 20)
    writeFileSync(target, Buffer.alloc(3 << 20, 7))
    truncateSync(target, 48 << 20)
    const pair = await pairOf({ source, target, block: true })
    const first = await pair.round()
    expect(first.bytesOnWire).to.be.lessThan(7 << 20)
    const fd = openSync(source, 'r+')
    writeSync(fd, 'changed', 9_000_000)
    closeSync(fd)
    const second = await pair.round({ mode: 'final' })
    expect(second).to.include({ verified: true, bytesChanged: 1 << 17 })
    expect(
      readFileSync(target)
        .subarray(0, 40 << 20)
        .equals(readFileSync(source)),
    ).to.equal(true)
    await using tooSmall = await startMoverPair({ source: target, target: source, block: true })
    expect(await failureOf(tooSmall.round())).to.have.property('code', 'TargetFull')
    await using mixed = await startMoverPair({ source: join(root, 'source'), target: join(root, 'target') })
    expect((await mixed.source.status(never)).volume.kind).to.equal('directory')
  })
  it('keeps what it may without root, and names the rest', async function () {
    if (!canMount) this.skip()
    const script = `mkdir -p a ro; echo 1 > a/unreadable; echo 2 > ro/file; chmod 555 ro; chmod 0 a/unreadable; mkfifo fifo
      chown -R 65532:65532 .; echo 3 > of-root; mknod device c 1 3`
    execFileSync('/bin/bash', ['-euc', script], { cwd: join(root, 'source') })
    for (const folder of ['.', 'source', 'target']) execFileSync('chown', ['65532:65532', join(root, folder)])
    const credentials = await issueMoverCredentials('move-1')
    const user = { user: 65_532 }
    const source = new MoverProcess(root, 'source', credentials)
    const target = new MoverProcess(root, 'target', credentials, user)
    stack.defer(() => source.kill())
    stack.defer(() => target.kill())
    await source.start()
    await target.start()
    expect((await target.control.status(never)).keeps).to.include({ owners: false, devices: false })
    const round = { mode: 'final', source: { address: `127.0.0.1:${source.port}` } } as const
    const result = await target.control.round(round, () => undefined, never)
    expect(result.verified).to.equal(true)
    const named = result.notKept.named.map(({ path, reason }) => `${path}: ${reason}`).sort()
    expect(named).to.deep.equal(['device: device', 'of-root: owner'])
    const error = await failureOf(target.control.round({ ...round, requireAll: true }, () => undefined, never))
    expect(error).to.have.property('code', 'CannotKeep')
    const modes = execFileSync('stat', ['-c', '%a', 'ro', 'a/unreadable'], {
      cwd: join(root, 'target'),
      encoding: 'utf8',
    })
    expect(modes).to.equal('555\n0\n')
  })
})
