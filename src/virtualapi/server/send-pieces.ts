// A long list on its way to a client: a few pieces at a time, each in the turn of its logical cluster.
import type { SentPieces } from '../exchange/exchange.ts'
import type { RawResponse } from './raw-response.ts'

/** Given to the connection and not yet taken by it; more would only lie there. */
const maxUnsent = 128 * 1024

/** Resolves when all was taken by the connection. Rejects where the client goes, or is too slow; ends the response. */
export function sendPieces(response: RawResponse, answer: SentPieces, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => new PiecesSender(response, answer, signal, { resolve, reject }).go())
}

class PiecesSender {
  readonly #response: RawResponse
  readonly #answer: SentPieces
  readonly #pieces: Iterator<Uint8Array>
  readonly #signal: AbortSignal
  readonly #settle: { readonly resolve: () => void; readonly reject: (error: Error) => void }
  readonly #stall: NodeJS.Timeout
  readonly #limit: NodeJS.Timeout
  #unsent = 0
  /** Of the next piece: it was waited for. */
  #hasTurn = false
  /** Somebody will call `go`: a turn, or a piece that was taken. */
  #isWaiting = false
  #isLast = false
  #isLost = false
  #isOver = false

  constructor(
    response: RawResponse,
    answer: SentPieces,
    signal: AbortSignal,
    settle: { resolve: () => void; reject: (error: Error) => void },
  ) {
    this.#response = response
    this.#answer = answer
    this.#pieces = answer.pieces[Symbol.iterator]()
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
      while (!this.#isOver && !this.#isLost && !this.#isLast && this.#unsent < maxUnsent && this.#isOurTurn())
        this.#next()
    } catch (error) {
      this.#fail(error)
    }
  }

  #isOurTurn(): boolean {
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
    this.#response.write(value, (error) => this.#taken(value, error))
  }

  #taken(piece: Uint8Array, error: Error | null | undefined): void {
    this.#unsent -= piece.length
    // The connection is lost: that it closes is heard next, as of any client that goes.
    if (error) {
      this.#isLost = true
      return
    }
    this.#answer.pieces.release?.(piece)
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
