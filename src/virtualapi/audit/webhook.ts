// Sends audit events to a webhook in batches, as kube-apiserver's webhook backend in batch mode does. No request waits for
// it: events beyond the bounds of the buffer, and batches that the webhook refuses to the end, are dropped and counted.
import { Buffer } from 'node:buffer'
import { setTimeout as delay } from 'node:timers/promises'
import type { AuditWebhookSettings } from '#crds/index.ts'
import type { AuditEvent } from '#virtualapi/request/request-audit.ts'

export interface WebhookParts {
  /** Posts an EventList. Rejects, or resolves with the status of the answer. */
  readonly post: (body: Uint8Array, signal: AbortSignal) => Promise<number>
  /** Called with the number of events that are lost, and why. */
  readonly onDropped: (events: number, error: Error) => void
  /** Called when a batch has arrived. */
  readonly onSent?: (events: number) => void
  /** Called after each attempt that failed. */
  readonly onFailed?: (error: Error) => void
}

/** Why events were not delivered. The message may be shown to admins of the logical cluster. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

const attempts = 5
const factor = 1.5
const jitter = 0.2
/** How long closing waits for batches, milliseconds. */
const closeMs = 2000
const head = Buffer.from('{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[')
const [comma, tail] = [Buffer.from(','), Buffer.from(']}')]

export class AuditWebhook implements AsyncDisposable {
  readonly #settings: AuditWebhookSettings
  readonly #parts: WebhookParts
  readonly #life = new AbortController()
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Bytes that wait or are under way. */
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  readonly #running = new Set<Promise<void>>()
  /** Batches that may be sent now, by the throttle. */
  #tokens: number
  #tokensAt = performance.now()
  #isClosed = false

  constructor(settings: AuditWebhookSettings, parts: WebhookParts) {
    this.#settings = settings
    this.#parts = parts
    this.#tokens = settings.throttle?.burst ?? 0
  }

  /** Bytes of the events that wait or are under way. */
  get bytes(): number {
    return this.#bytes
  }

  /** Queues an event. Never blocks. */
  write(event: AuditEvent): void {
    const { bufferSize, maxEventBytes, maxBufferedBytes, maxBatchSize, maxBatchBytes } = this.#settings
    if (this.#isClosed || this.#waiting.length >= bufferSize) {
      this.#drop(1, this.#isClosed ? 'the webhook is closed' : 'audit buffer queue blocked')
      return
    }
    const text = maxEventBytes === undefined ? event.text() : event.textWithin(maxEventBytes)
    if (text === undefined) {
      this.#drop(1, 'event is too large even after truncating')
      return
    }
    const line = Buffer.from(text)
    if (this.#bytes + line.length > maxBufferedBytes) {
      this.#drop(1, 'audit buffer queue blocked')
      return
    }
    this.#waiting.push(line)
    this.#bytes += line.length
    this.#waitingBytes += line.length
    if (this.#waiting.length >= maxBatchSize || this.#waitingBytes >= maxBatchBytes) this.#send()
    else this.#sendIn(this.#settings.maxBatchWaitMs)
  }

  /** Waits at most two seconds for the events that are left. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    const ended = (async () => {
      while (!this.#life.signal.aborted && (this.#waiting.length > 0 || this.#running.size > 0)) {
        if (this.#waiting.length > 0 && this.#running.size < this.#settings.maxParallel) this.#start(this.#take())
        else await Promise.race(this.#running)
      }
    })()
    const limit = new AbortController()
    await Promise.race([ended, delay(closeMs, undefined, { signal: limit.signal }).catch(() => undefined)])
    limit.abort()
    this.#life.abort(new Error('the server is shutting down'))
    await Promise.all(this.#running)
    if (this.#waiting.length > 0) this.#drop(this.#waiting.length, 'the server is shutting down')
    this.#bytes -= this.#waitingBytes
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #sendIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#send(), ms).unref()
  }

  /** Sends batches as far as the bounds allow it; the rest waits for a batch to end or for the throttle. */
  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#waiting.length > 0 && this.#running.size < this.#settings.maxParallel) {
      const waitMs = this.#throttled()
      if (waitMs > 0) {
        this.#sendIn(waitMs)
        return
      }
      this.#start(this.#take())
    }
  }

  /** Milliseconds until the next batch may be sent; 0: now, and the batch is counted. */
  #throttled(): number {
    const { throttle } = this.#settings
    if (throttle === undefined) return 0
    const now = performance.now()
    this.#tokens = Math.min(throttle.burst, this.#tokens + ((now - this.#tokensAt) / 1000) * throttle.qps)
    this.#tokensAt = now
    if (this.#tokens < 1) return Math.max(1, Math.ceil(((1 - this.#tokens) / throttle.qps) * 1000))
    this.#tokens -= 1
    return 0
  }

  #take(): readonly Buffer[] {
    const { maxBatchSize, maxBatchBytes } = this.#settings
    let [count, bytes] = [0, 0]
    for (const { length } of this.#waiting) {
      if (count >= maxBatchSize || (count > 0 && bytes + length > maxBatchBytes)) break
      count += 1
      bytes += length
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  #start(lines: readonly Buffer[]): void {
    const bytes = lines.reduce((sum, { length }) => sum + length, 0)
    const running = this.#deliver(lines).finally(() => {
      this.#bytes -= bytes
      this.#running.delete(running)
      if (!this.#isClosed && this.#waiting.length > 0) this.#sendIn(this.#isFull() ? 1 : this.#settings.maxBatchWaitMs)
    })
    this.#running.add(running)
  }

  #isFull(): boolean {
    const { maxBatchSize, maxBatchBytes } = this.#settings
    return this.#waiting.length >= maxBatchSize || this.#waitingBytes >= maxBatchBytes
  }

  /** Tries five times. Never rejects. */
  async #deliver(lines: readonly Buffer[]): Promise<void> {
    const { signal } = this.#life
    let backoff = this.#settings.initialBackoffMs
    let failure = new Error('the webhook has not answered')
    for (let attempt = 1; attempt <= attempts && !signal.aborted; attempt++) {
      try {
        const status = await this.#parts.post(bodyOf(lines), signal)
        if (status >= 200 && status <= 206) {
          this.#parts.onSent?.(lines.length)
          return
        }
        failure = new WebhookError(`the webhook has answered with status ${String(status)}`)
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error))
      }
      if (!this.#life.signal.aborted) this.#parts.onFailed?.(failure)
      // A server that stops waits for no second attempt.
      if (attempt === attempts || this.#isClosed) break
      await delay(backoff * (1 + Math.random() * jitter), undefined, { signal, ref: false }).catch(() => undefined)
      backoff *= factor
    }
    this.#parts.onDropped(lines.length, failure)
  }

  #drop(events: number, why: string): void {
    this.#parts.onDropped(events, new Error(why))
  }
}

function bodyOf(lines: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [head]
  lines.forEach((line, i) => (i === 0 ? parts.push(line) : parts.push(comma, line)))
  parts.push(tail)
  return Buffer.concat(parts)
}
