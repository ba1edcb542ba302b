// Sends a chunked answer: a few chunks at a time, each in a turn of its logical cluster.
import type { SentChunks } from '#virtualapi/request/exchange.ts'
import type { RawResponse } from './raw-response.ts'

/** How many bytes may be written and not yet flushed; above this, no more are written. */
const maxUnsent = 128 * 1024

/**
 * Resolves when all was flushed to the connection. Rejects if the client disconnects or is too slow. Ends the response.
 */
export function sendChunks(response: RawResponse, answer: SentChunks, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => new PiecesSender(response, answer, signal, { resolve, reject }).go())
}

class PiecesSender {
  readonly #response: RawResponse
  readonly #answer: SentChunks
  readonly #pieces: Iterator<Uint8Array>
  readonly #signal: AbortSignal
  readonly #settle: { readonly resolve: () => void; readonly reject: (error: Error) => void }
  readonly #stall: NodeJS.Timeout
  readonly #limit: NodeJS.Timeout
  #unsent = 0
  /** The turn for the next chunk was awaited. */
  #hasTurn = false
  /** `go` will be called when the awaited turn comes. */
  #isWaiting = false
  #isLast = false
  #isLost = false
  #isOver = false

  constructor(
    response: RawResponse,
    answer: SentChunks,
    signal: AbortSignal,
    settle: { resolve: () => void; reject: (error: Error) => void },
  ) {
    this.#response = response
    this.#answer = answer
    this.#pieces = answer.chunks[Symbol.iterator]()
    this.#signal = signal
    this.#settle = settle
    const { maxStallMs, maxMs } = answer
    this.#stall = setTimeout(() => this.#fail(tooSlow('nothing', maxStallMs)), maxStallMs)
    this.#limit = setTimeout(() => this.#fail(tooSlow('not all of its answer', maxMs)), maxMs)
    signal.addEventListener('abort', this.#aborted, { once: true })
    if (signal.aborted) this.#aborted()
  }

  readonly go = (): void => {
    this.#isWaiting = false
    try {
      while (!this.#isOver && !this.#isLost && !this.#isLast && this.#unsent < maxUnsent && this.#takeTurn())
        this.#next()
    } catch (error) {
      this.#fail(error)
    }
  }

  #takeTurn(): boolean {
    const turn = this.#hasTurn ? undefined : this.#answer.turn()
    this.#hasTurn = turn !== undefined
    if (turn === undefined) return true
    this.#isWaiting = true
    void turn.then(this.go)
    return false
  }

  #next(): void {
    const { done = false, value } = this.#pieces.next() as IteratorResult<Uint8Array, undefined>
    if (done || value === undefined) {
      this.#isLast = true
      this.#response.end()
      if (this.#unsent === 0) this.#end()
      return
    }
    if (value.length === 0) return
    this.#unsent += value.length
    this.#response.write(value, (error) => this.#flushed(value, error))
  }

  #flushed(chunk: Uint8Array, error: Error | null | undefined): void {
    this.#unsent -= chunk.length
    // The connection is lost; its 'close' event ends this.
    if (error) {
      this.#isLost = true
      return
    }
    this.#answer.chunks.release?.(chunk)
    if (this.#isOver) return
    this.#stall.refresh()
    if (!this.#isLast) {
      if (!this.#isWaiting) this.go()
    } else if (this.#unsent === 0) this.#end()
  }

  readonly #aborted = (): void => this.#fail(this.#signal.reason)

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#end(error instanceof Error ? error : new Error('the answer could not be sent', { cause: error }))
  }

  #end(failure?: Error): void {
    this.#isOver = true
    clearTimeout(this.#stall)
    clearTimeout(this.#limit)
    this.#signal.removeEventListener('abort', this.#aborted)
    if (failure === undefined) this.#settle.resolve()
    else this.#settle.reject(failure)
  }
}

function tooSlow(what: string, ms: number): Error {
  return new Error(`the client took ${what} for ${ms / 1000} s`)
}
