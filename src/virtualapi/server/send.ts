// Writes answers to clients' connections, for both protocols; the only writer except for upgrades.
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { childSignal } from '#async/index.ts'
import { largeResponseBytes } from '#virtualapi/codec/responses.ts'
import type { Push, PushResponse, SentResponse, Sink, StreamResponse } from '#virtualapi/request/exchange.ts'
import { maxSendMs } from './handle.ts'
import type { RawResponse } from './wire/raw-response.ts'
import { sendChunks } from './wire/send-chunks.ts'

/** How many bytes of a large body are written at once. */
const pieceBytes = 128 * 1024

/** Where an answer goes. */
export interface Sending {
  readonly response: RawResponse
  readonly headOnly: boolean
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/**
 * Resolves when the answer is written, a large one when it is flushed. Rejects if the client disconnects or is too
 * slow.
 */
export async function send(answer: Exclude<SentResponse, PushResponse>, to: Sending): Promise<void> {
  const { response, headOnly, signal } = to
  if (isGone(response)) return
  if (answer.kind === 'bytes') {
    writeHead(response, answer.status, { ...answer.headers, 'content-length': String(answer.body.length) })
    // The request counts against its limits until a large response is flushed, so a client that does not read gets no
    // more.
    if (!headOnly && answer.body.length > largeResponseBytes) await sendLarge(response, answer.body, signal)
    else response.end(headOnly || answer.body.length === 0 ? undefined : answer.body)
    return
  }
  writeHead(response, answer.status, answer.headers)
  if (headOnly) {
    response.end()
    return
  }
  if (answer.kind === 'chunks') await sendChunks(response, answer, signal)
  else if (answer.maxMs === undefined) await stream(response, answer, signal)
  else await within(answer.maxMs, signal, (limited) => stream(response, answer, limited))
}

/**
 * Starts a push, which retains only the response and `ended`. `ended` is called with the error if the push fails, and
 * without one when the response closes.
 */
export function sendPush(answer: PushResponse, response: RawResponse, ended: (failure?: unknown) => void): Push {
  writeHead(response, answer.status, answer.headers)
  // The client waits for the headers of a watch, even if there are no events yet.
  if ('flushHeaders' in response) response.flushHeaders()
  return new ResponseSink(response, answer, ended).push
}

/** True if nothing can be sent any more. */
export function isGone(response: RawResponse): boolean {
  return response.destroyed || response.closed
}

function writeHead(response: RawResponse, status: number, headers: Readonly<Record<string, string>>): void {
  if ('respond' in response) response.respond({ ...headers, ':status': status })
  else response.writeHead(status, headers)
}

async function stream(
  response: RawResponse,
  { chunks, maxStallMs }: StreamResponse,
  signal: AbortSignal,
): Promise<void> {
  if ('flushHeaders' in response) response.flushHeaders()
  for await (const chunk of chunks) {
    if (chunk.length === 0) continue
    if (!response.write(chunk)) await writable(response, maxStallMs, signal)
  }
  response.end()
}

async function writable(response: RawResponse, maxStallMs: number | undefined, signal: AbortSignal): Promise<void> {
  if (response.destroyed) throw new Error('the client went away')
  if (maxStallMs === undefined) await once(response, 'drain', { signal })
  else await within(maxStallMs, signal, (limited) => once(response, 'drain', { signal: limited }))
}

/**
 * Writes a body piece by piece, because TLS encrypts each write without a pause. Resolves when all of it is flushed.
 * Rejects if the client is too slow for its size.
 */
async function sendLarge(response: RawResponse, body: Uint8Array, signal: AbortSignal): Promise<void> {
  await within(maxSendMs(body.length), signal, async (limited) => {
    for (let at = 0; at < body.length; at += pieceBytes) {
      if (isGone(response)) return
      if (!response.write(body.subarray(at, at + pieceBytes))) await once(response, 'drain', { signal: limited })
      else await nextTurn(undefined, { signal: limited })
    }
    const flushed = once(response, 'finish', { signal: limited })
    response.end()
    await flushed
  })
}

async function within(
  ms: number,
  signal: AbortSignal,
  wait: (limited: AbortSignal) => Promise<unknown>,
): Promise<void> {
  using limited = childSignal(signal)
  const timer = setTimeout(() => limited.abort(tooSlow(ms)), ms)
  try {
    await wait(limited.signal)
  } finally {
    clearTimeout(timer)
  }
}

function tooSlow(ms: number): Error {
  return new Error(`the client took nothing for ${ms / 1000} s`)
}

/** One per watch, so it is small: no promise, and a timer only while its client does not read. */
class ResponseSink implements Sink {
  readonly push: Push
  readonly #response: RawResponse
  readonly #maxStallMs: number
  readonly #ended: (failure?: unknown) => void
  #stalled: NodeJS.Timeout | undefined

  constructor(response: RawResponse, answer: PushResponse, ended: (failure?: unknown) => void) {
    this.#response = response
    this.#maxStallMs = answer.maxStallMs
    this.#ended = ended
    this.push = answer.begin(this)
    response.on('drain', () => {
      clearTimeout(this.#stalled)
      this.push.resume()
    })
    response.on('close', () => {
      clearTimeout(this.#stalled)
      this.push.close()
      this.#ended()
    })
  }

  write(chunk: Uint8Array): boolean {
    if (this.#response.destroyed || this.#response.write(chunk)) return true
    clearTimeout(this.#stalled)
    this.#stalled = setTimeout(() => this.fail(tooSlow(this.#maxStallMs)), this.#maxStallMs)
    return false
  }

  end(): void {
    this.#response.end()
  }

  fail(error: unknown): void {
    this.#ended(error)
    this.#response.destroy()
  }
}
