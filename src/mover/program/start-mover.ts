// `kcp mover`: one side of the copy of one volume. The source only reads; the target makes its volume equal to the
// source's, in rounds that control starts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { programVersion, type Logger } from '#telemetry/index.ts'
import {
  errorBody,
  identityOf,
  MoverError,
  protocolVersion,
  type MoverRole,
  type MoverStatus,
  type PartyCredentials,
  type RoundOptions,
  type RoundResult,
} from '#mover/contract/index.ts'
import { HashPool } from '#mover/files/hash-pool.ts'
import { keepsOf, openVolume, volumeStatus, type Volume } from '#mover/files/volume.ts'
import { parseRoundOptions } from './round-options.ts'
import { answer, readJson, refuse, startMoverServer, type MoverServer } from './server.ts'
import { serveTarget, type Totals } from '#mover/source/source-session.ts'
import { surveyVolume } from '#mover/source/survey.ts'
import { RoundCounts } from '#mover/target/round-counts.ts'
import { runRound } from '#mover/target/target-session.ts'
import { FrameStream } from '#mover/wire/frames.ts'
import { dialSource, secureWithSource } from '#mover/wire/peer-connection.ts'
import { TokenBucket } from '#mover/wire/token-bucket.ts'

export interface MoverOptions {
  readonly role: MoverRole
  /** Folder or block device. */
  readonly volume: string
  readonly block: boolean
  readonly credentials: PartyCredentials
  readonly host: string
  readonly port: number
  readonly log: Logger
  /** Milliseconds after which a peer that says or takes nothing is lost. */
  readonly silenceMs?: number
}

export interface Mover extends AsyncDisposable {
  readonly port: number
}

interface Running {
  readonly what: 'survey' | RoundOptions['mode']
  readonly counts?: RoundCounts
}

const progressMs = 1000
/** How long a round waits for its relay, and a relay for its round. */
const relayMs = 60_000
/** How long the last line of a round may take to be sent. */
const lastLineMs = 30_000

/** Starts a mover. Rejects with MoverError if the volume or the credentials are not good. */
export async function startMover(options: MoverOptions): Promise<Mover> {
  const { move, party } = identityOf(options.credentials['tls.crt'])
  if (party !== options.role) throw new Error(`the credentials are those of ${party}, not of ${options.role}`)
  // Modes are set as the source has them.
  process.umask(0)
  const volume = openVolume(options.volume, { block: options.block, write: options.role === 'target' })
  const mover = new RunningMover(options, move, volume)
  await mover.listen()
  return mover
}

class RunningMover implements Mover {
  readonly #options: MoverOptions
  readonly #move: string
  readonly #volume: Volume
  readonly #pool = new HashPool()
  readonly #life = new AbortController()
  #server: MoverServer | undefined
  #running: Running | undefined
  #relay: { readonly stream: Duplex; readonly timer: NodeJS.Timeout } | undefined
  #relayWanted: ((stream: Duplex) => void) | undefined
  #totals: Totals | undefined
  #target: FrameStream | undefined

  constructor(options: MoverOptions, move: string, volume: Volume) {
    this.#options = options
    this.#move = move
    this.#volume = volume
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  async listen(): Promise<void> {
    const { credentials, role, host, port, log } = this.#options
    this.#server = await startMoverServer({
      credentials,
      move: this.#move,
      role,
      host,
      port,
      onRequest: (request, response) => void this.#answer(request, response),
      onRelay: (stream, head) => this.#takeRelay(stream, head),
      onTarget: (stream) => void this.#serveTarget(stream),
      onRefused: (reason) => log.warn('connection refused', { reason }),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new MoverError('Cancelled', 'the mover stops'))
    this.#target?.fail(new MoverError('Cancelled', 'the mover stops'))
    this.#dropRelay()
    await this.#server?.[Symbol.asyncDispose]()
    await this.#pool[Symbol.asyncDispose]()
    this.#volume[Symbol.dispose]()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { role } = this.#options
    const call = `${request.method ?? ''} ${request.url ?? ''}`
    try {
      if (call === 'GET /status') answer(response, 200, { result: this.#status() })
      else if (call === 'POST /survey' && role === 'source') await this.#survey(request, response)
      else if (call === 'POST /rounds' && role === 'target') await this.#round(request, response)
      else refuse(response, 404, new MoverError('ProtocolViolated', `a ${role} mover does not serve ${call}`))
    } catch (error) {
      this.#options.log.warn('request failed', { call, error: String(error) })
      const known = error instanceof MoverError ? error : new MoverError('Failed', String(error), { cause: error })
      if (!response.headersSent) refuse(response, known.code === 'Busy' ? 409 : 400, known)
      else response.destroy()
    }
  }

  #status(): MoverStatus {
    const { role } = this.#options
    return {
      role,
      move: this.#move,
      version: programVersion,
      protocol: protocolVersion,
      volume: volumeStatus(this.#volume),
      keeps: keepsOf(),
      ...(this.#running && { running: this.#running.what }),
      ...(this.#running?.counts && { progress: this.#running.counts.progress() }),
    }
  }

  async #survey(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#begin({ what: 'survey' })
    using lines = new ResponseLines(request, response, this.#life.signal)
    try {
      let at = 0
      const onProgress = (progress: unknown): void => {
        if (performance.now() - at < progressMs) return
        at = performance.now()
        lines.send({ progress })
      }
      const survey = await surveyVolume(this.#volume, { onProgress, signal: lines.signal })
      const { directories, files, hardLinks, symlinks, fifos, sockets, devices } = survey.entries
      const entries = directories + files + hardLinks + symlinks + fifos + sockets + devices
      this.#totals = { entries, bytes: survey.bytes }
      await lines.end({ result: survey })
    } catch (error) {
      await lines.end({ error: errorBody(error) })
    } finally {
      this.#running = undefined
    }
  }

  #begin(running: Running): void {
    if (this.#running !== undefined) throw new MoverError('Busy', `a ${this.#running.what} runs already`)
    this.#running = running
  }

  async #round(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const round = parseRoundOptions(await readJson(request))
    let wire: TLSSocket | undefined
    const counts = new RoundCounts(() => rawBytes(wire))
    this.#begin({ what: round.mode, counts })
    using lines = new ResponseLines(request, response, this.#life.signal)
    const timer = setInterval(() => lines.send({ progress: counts.progress() }), progressMs)
    try {
      const result = await this.#copy(round, counts, lines.signal, (stream) => (wire = stream))
      await lines.end({ result })
    } catch (error) {
      this.#options.log.warn('round failed', { mode: round.mode, ...errorBody(error) })
      await lines.end({ error: errorBody(error) })
    } finally {
      clearInterval(timer)
      this.#running = undefined
    }
  }

  async #copy(
    round: RoundOptions,
    counts: RoundCounts,
    signal: AbortSignal,
    onConnected: (stream: TLSSocket) => void,
  ): Promise<RoundResult> {
    const { credentials, silenceMs } = this.#options
    const beganAt = performance.now()
    const { source } = round
    const isDirect = 'address' in source
    const stream = isDirect ? await dialSource(source.address, signal) : await this.#nextRelay(signal)
    const secure = await secureWithSource(stream, { credentials, move: this.#move, isDirect, signal })
    onConnected(secure)
    const bucket = round.bandwidth === undefined ? undefined : new TokenBucket(round.bandwidth)
    using frames = new FrameStream(secure, {
      ...(silenceMs !== undefined && { silenceMs }),
      ...(bucket && { pace: (bytes: number) => bucket.take(bytes) }),
    })
    const stop = (): void => frames.fail(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    try {
      const result = await runRound({ volume: this.#volume, frames, pool: this.#pool, counts, round })
      return { ...result, durationMs: Math.round(performance.now() - beganAt) }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** The source's side of a round. A new connection of the target ends the former one, which may be half open. */
  async #serveTarget(stream: TLSSocket): Promise<void> {
    const { silenceMs, log } = this.#options
    this.#target?.fail(new MoverError('Cancelled', 'the target has opened another connection'))
    let bucket: TokenBucket | undefined
    using frames = new FrameStream(stream, {
      ...(silenceMs !== undefined && { silenceMs }),
      pace: (bytes) => bucket?.take(bytes),
    })
    this.#target = frames
    try {
      const session = { volume: this.#volume, frames, pool: this.#pool, totals: this.#totals }
      this.#totals = await serveTarget({
        ...session,
        onBandwidth: (perSecond) => (bucket = new TokenBucket(perSecond)),
      })
    } catch (error) {
      log.warn('round failed', { ...errorBody(error) })
      await frames.tell(errorBody(error)).catch(() => undefined)
    } finally {
      if (this.#target === frames) this.#target = undefined
    }
  }

  #takeRelay(stream: Duplex, head: Buffer): boolean {
    if (this.#options.role !== 'target' || this.#relay !== undefined) return false
    if (head.length > 0) stream.unshift(head)
    stream.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: kcp-mover-relay\r\n\r\n')
    const wanted = this.#relayWanted
    this.#relayWanted = undefined
    if (wanted !== undefined) wanted(stream)
    else this.#relay = { stream, timer: setTimeout(() => this.#dropRelay(), relayMs) }
    stream.once('close', () => {
      if (this.#relay?.stream === stream) this.#dropRelay()
    })
    return true
  }

  #dropRelay(): Duplex | undefined {
    const relay = this.#relay
    this.#relay = undefined
    clearTimeout(relay?.timer)
    relay?.stream.destroy()
    return undefined
  }

  async #nextRelay(signal: AbortSignal): Promise<Duplex> {
    if (this.#relay !== undefined) {
      const { stream, timer } = this.#relay
      clearTimeout(timer)
      this.#relay = undefined
      return stream
    }
    const found = Promise.withResolvers<Duplex>()
    this.#relayWanted = found.resolve
    const timer = setTimeout(
      () => found.reject(new MoverError('PeerLost', 'no relay was opened within a minute')),
      relayMs,
    )
    const stop = (): void => found.reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await found.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      this.#relayWanted = undefined
    }
  }
}

function rawBytes(secure: TLSSocket | undefined): number {
  return secure === undefined ? 0 : secure.bytesRead + secure.bytesWritten
}

/** Lines of JSON to control. Closing the request aborts `signal`. */
class ResponseLines implements Disposable {
  readonly #response: ServerResponse
  readonly #controller = new AbortController()
  readonly #life: AbortSignal
  readonly #stop = (): void => this.#controller.abort(this.#life.reason)

  constructor(request: IncomingMessage, response: ServerResponse, life: AbortSignal) {
    this.#response = response
    this.#life = life
    request.resume()
    life.addEventListener('abort', this.#stop, { once: true })
    response.once('close', () => this.#controller.abort(new MoverError('Cancelled', 'the request was closed')))
    response.writeHead(200, { 'content-type': 'application/x-ndjson', connection: 'close' })
    response.flushHeaders()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Sends a line, unless the reader is behind. */
  send(line: object): void {
    const { writableNeedDrain, writableEnded, destroyed } = this.#response
    if (!writableNeedDrain && !writableEnded && !destroyed) this.#response.write(`${JSON.stringify(line)}\n`)
  }

  /** Sends the last line; resolves when it was taken, or after a while. */
  async end(line: object): Promise<void> {
    if (this.#response.destroyed) return
    const sent = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => sent.resolve(undefined), lastLineMs)
    this.#response.once('close', () => sent.resolve(undefined))
    this.#response.end(`${JSON.stringify(line)}\n`, () => sent.resolve(undefined))
    await sent.promise
    clearTimeout(timer)
  }

  [Symbol.dispose](): void {
    this.#life.removeEventListener('abort', this.#stop)
  }
}
