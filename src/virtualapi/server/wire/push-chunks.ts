// Makes a push an AsyncIterable, for readers within the process and for WebSockets.
import type { PushResponse, Sink } from '#virtualapi/request/exchange.ts'

/** Starts the push. It ends when `signal` aborts, and writes the next chunk only after the last was read. */
export function pushedChunks(response: PushResponse, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const chunks = new PushedChunks()
  const push = response.begin(chunks)
  const stop = (): void => push.end()
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next()) {
        yield chunk
        push.resume()
      }
    } finally {
      signal.removeEventListener('abort', stop)
      push.close()
    }
  }
  return read()
}

class PushedChunks implements Sink {
  #chunks: Uint8Array[] = []
  #over: { failure: unknown } | 'ended' | undefined
  #wake: (() => void) | undefined

  write(chunk: Uint8Array): boolean {
    this.#chunks.push(chunk)
    this.#wake?.()
    return false
  }

  end(): void {
    this.#over ??= 'ended'
    this.#wake?.()
  }

  fail(failure: unknown): void {
    this.#over ??= { failure }
    this.#wake?.()
  }

  /** The next chunk; undefined after the last. Rejects if the push failed. */
  async next(): Promise<Uint8Array | undefined> {
    while (this.#chunks.length === 0 && this.#over === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    this.#wake = undefined
    const chunk = this.#chunks.shift()
    if (chunk === undefined && typeof this.#over === 'object') throw this.#over.failure
    return chunk
  }
}
