// The frames between target and source: length, type, body. The target asks for passes over the tree and for files;
// the source answers. Both sides bound what they keep for the other one.
//
//   target                                source
//   hello (version, bandwidth)       ->
//                                    <-   hello (kind, size, whether it is empty)
//   pass (with digests?)             ->
//   credit (bytes of entries)        ->
//                                    <-   entries (folder by folder), with digests of small files
//   want (number of entry, what, path) ->
//   hashes of own blocks             ->   only for changed blocks
//                                    <-   begin, data, zeros, compared (so far), end; or whole; or digest
//                                    <-   passed (number of entries), after the last entry
//   done                             ->
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { Duplex } from 'node:stream'
import { MoverError, parseErrorBody, type MoverErrorBody } from '#mover/contract/index.ts'
import { violated } from './bytes.ts'

export const frameTypes = {
  hello: 1,
  ping: 2,
  error: 3,
  pass: 4,
  credit: 5,
  entries: 6,
  digest: 7,
  passed: 8,
  want: 9,
  hashes: 10,
  begin: 11,
  data: 12,
  zeros: 13,
  end: 14,
  whole: 15,
  done: 16,
  compared: 17,
} as const
export type FrameType = (typeof frameTypes)[keyof typeof frameTypes]

/** How the content of a file ended. `changed`: the file changed while it was read. */
export const endStates = ['complete', 'changed', 'vanished', 'unreadable'] as const
export type EndState = (typeof endStates)[number]

/** What the target wants of a file: all content, the blocks that differ from its own, or the digest. */
export const wantKinds = ['content', 'blocks', 'digest'] as const
export type WantKind = (typeof wantKinds)[number]

/** What a frame of hashes has. */
export const hashMarks = { list: 0, zeros: 1, end: 2 } as const

/** Bound of a frame. The largest one is an entry with its attributes (1 MiB). */
export const maxFrameBytes = (1 << 20) + (1 << 18)
const headerBytes = 5
/** A mover sends a ping when it has nothing else to send for this long, milliseconds. */
const pingMs = 5000
/** A peer that sends nothing, or takes nothing, for this long is lost. */
const defaultSilenceMs = 60_000

export interface Frame {
  readonly type: number
  readonly body: Buffer
}

export interface FrameStreamOptions {
  readonly silenceMs?: number
  /** Waits until this many bytes may be sent. */
  readonly pace?: (bytes: number) => Promise<void> | undefined
}

/** Frames over a connection. Nothing is kept beyond the frame that arrives and the socket's own buffers. */
export class FrameStream implements Disposable {
  readonly #stream: Duplex
  readonly #silenceMs: number
  readonly #timer: NodeJS.Timeout
  readonly #pace: FrameStreamOptions['pace']
  #sentAt = performance.now()
  #heardAt = performance.now()
  #drainedAt = performance.now()
  #isWaiting = false
  #failure: Error | undefined
  #drained: PromiseWithResolvers<undefined> | undefined

  constructor(stream: Duplex, { silenceMs = defaultSilenceMs, pace }: FrameStreamOptions = {}) {
    this.#stream = stream
    this.#silenceMs = silenceMs
    this.#pace = pace
    this.#timer = setInterval(() => this.#watch(), Math.min(1000, silenceMs / 4))
    stream.on('drain', () => this.#resume())
    stream.once('close', () => this.fail(new MoverError('PeerLost', 'the other mover is lost: the connection ended')))
    stream.on('error', (cause) =>
      this.fail(new MoverError('PeerLost', `the other mover is lost: ${cause.message}`, { cause })),
    )
  }

  /** Ends the connection; waiting calls reject with this error. */
  fail(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    clearInterval(this.#timer)
    this.#drained?.reject(error)
    this.#stream.destroy()
  }

  /** The error that ended the connection. */
  get failure(): Error | undefined {
    return this.#failure
  }

  [Symbol.dispose](): void {
    this.fail(new MoverError('Cancelled', 'the round has ended'))
  }

  /** Sends a frame; resolves once the connection takes more. Rejects if the connection is lost. */
  async send(type: FrameType, body: Uint8Array, more?: Uint8Array): Promise<void> {
    const length = body.length + (more?.length ?? 0)
    const paced = this.#pace?.(length + headerBytes)
    if (paced !== undefined) await paced
    this.sendNow(type, body, more)
    if (this.#stream.writableNeedDrain) {
      this.#drained ??= Promise.withResolvers()
      await this.#drained.promise
    }
  }

  /** Sends a frame without waiting; for small ones, whose number is bounded. */
  sendNow(type: FrameType, body: Uint8Array, more?: Uint8Array): void {
    if (this.#failure !== undefined) throw this.#failure
    const header = Buffer.allocUnsafe(headerBytes)
    header.writeUInt32LE(body.length + (more?.length ?? 0), 0)
    header[4] = type
    if (!this.#stream.writableNeedDrain) this.#drainedAt = performance.now()
    this.#sentAt = performance.now()
    this.#stream.cork()
    this.#stream.write(header)
    if (body.length > 0) this.#stream.write(body)
    if (more !== undefined) this.#stream.write(more)
    this.#stream.uncork()
  }

  /**
   * Tells the other side why this one ends; resolves once the other side has closed the connection, or after a while. To
   * close it at once could take the error back from the other side, which may still be sending.
   */
  async tell(error: MoverErrorBody): Promise<void> {
    if (this.#failure !== undefined) return
    this.sendNow(frameTypes.error, Buffer.from(JSON.stringify(error)))
    const sent = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => sent.resolve(undefined), 2000)
    this.#stream.once('close', () => sent.resolve(undefined))
    this.#stream.end()
    this.#stream.resume()
    await sent.promise
    clearTimeout(timer)
  }

  /** All frames but pings. Throws the error that the other side tells, and the one that ends the connection. */
  async *frames(): AsyncGenerator<Frame, void> {
    let chunks: Buffer[] = []
    let length = 0
    let wanted = headerBytes
    let told: MoverError | undefined
    try {
      this.#isWaiting = true
      // The connection outlives the loop: it still takes the error that ends it.
      for await (const chunk of this.#stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        this.#isWaiting = false
        chunks.push(chunk)
        length += chunk.length
        if (length < wanted) {
          this.#wait()
          continue
        }
        let all = chunks.length === 1 ? chunk : Buffer.concat(chunks, length)
        for (;;) {
          wanted = all.length < headerBytes ? headerBytes : frameLength(all)
          if (all.length < wanted) break
          const frame = { type: all[4] ?? 0, body: all.subarray(headerBytes, wanted) }
          all = all.subarray(wanted)
          if (frame.type === frameTypes.error) this.fail((told = toldError(frame.body)))
          if (told !== undefined) throw told
          if (frame.type !== frameTypes.ping) yield frame
        }
        chunks = all.length > 0 ? [all] : []
        length = all.length
        this.#wait()
      }
    } catch (error) {
      throw told ?? (error instanceof MoverError ? error : (this.#failure ?? error))
    }
    throw this.#failure ?? new MoverError('PeerLost', 'the other mover is lost: it ended the connection')
  }

  /** From here on, silence counts. */
  #wait(): void {
    this.#heardAt = performance.now()
    this.#isWaiting = true
  }

  #resume(): void {
    this.#drainedAt = performance.now()
    this.#drained?.resolve(undefined)
    this.#drained = undefined
  }

  #watch(): void {
    const now = performance.now()
    const isStalled = this.#stream.writableNeedDrain && now - this.#drainedAt > this.#silenceMs
    const isSilent = this.#isWaiting && now - this.#heardAt > this.#silenceMs
    if (isStalled || isSilent)
      this.fail(new MoverError('PeerLost', `the other mover ${isStalled ? 'takes' : 'sends'} nothing any more`))
    else if (now - this.#sentAt > Math.min(pingMs, this.#silenceMs / 4) && !this.#stream.writableNeedDrain)
      this.sendNow(frameTypes.ping, Buffer.alloc(0))
  }
}

function frameLength(bytes: Buffer): number {
  const length = bytes.readUInt32LE(0)
  if (length > maxFrameBytes) throw violated(`a frame of ${length} bytes`)
  return headerBytes + length
}

function toldError(body: Buffer): MoverError {
  try {
    return parseErrorBody(parseJsonText(body.subarray(0, 8192).toString()))
  } catch {
    return violated('an error that cannot be read')
  }
}
