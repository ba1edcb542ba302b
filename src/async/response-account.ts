// A bound on the bytes of unfinished answers of one server, or to one logical cluster. Above the limit only the oldest
// answer is read further: the others wait in their sockets, where they cost the server that sends them.

/** One answer that is being read. Disposing of it ends it. */
export interface HeldResponse extends Disposable {
  /** Those that are charged. */
  readonly bytes: number
  /** Charges bytes. Resolves when more may be read, undefined: at once. The answer may be disposed of meanwhile. */
  hold(bytes: number): Promise<void> | undefined
}

interface Reading {
  bytes: number
  /** Reads further; undefined: it does not wait. */
  resume: (() => void) | undefined
}

export class ResponseAccount {
  readonly #maxBytes: number
  /** In the order in which they began. */
  readonly #readings = new Set<Reading>()
  #held = 0

  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of all unfinished answers. */
  get held(): number {
    return this.#held
  }

  begin(): HeldResponse {
    const reading: Reading = { bytes: 0, resume: undefined }
    this.#readings.add(reading)
    return {
      get bytes() {
        return reading.bytes
      },
      hold: (bytes) => {
        reading.bytes += bytes
        this.#held += bytes
        if (this.#mayRead(reading)) return undefined
        return new Promise((resolve) => (reading.resume = resolve))
      },
      [Symbol.dispose]: () => {
        if (!this.#readings.delete(reading)) return
        this.#held -= reading.bytes
        reading.resume?.()
        for (const other of this.#readings) {
          if (other.resume === undefined || !this.#mayRead(other)) continue
          other.resume()
          other.resume = undefined
        }
      },
    }
  }

  /** The oldest that holds something always goes on, so that some answer always ends. */
  #mayRead(reading: Reading): boolean {
    if (this.#held <= this.#maxBytes) return true
    for (const one of this.#readings) if (one.bytes > 0) return one === reading
    return true
  }
}
