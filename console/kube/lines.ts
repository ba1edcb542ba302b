// JSON lines of a stream, in the batches in which they arrive.

export interface LineOptions {
  /** Empty lines are lines, as in logs. Default false. */
  readonly keepEmpty?: boolean
  /** A longer line is given in pieces. Default: no limit. */
  readonly maxLength?: number
}

/** Collects pieces of text and returns the lines that are complete. */
export class LineBuffer {
  #rest = ''
  readonly #keepEmpty: boolean
  readonly #maxLength: number

  constructor({ keepEmpty = false, maxLength = Infinity }: LineOptions = {}) {
    this.#keepEmpty = keepEmpty
    this.#maxLength = maxLength
  }

  /** The lines that `piece` completes, without their ends. */
  push(piece: string): string[] {
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > this.#maxLength) {
      lines.push(this.#rest)
      this.#rest = ''
    }
    return this.#keepEmpty ? lines : lines.filter((line) => line !== '')
  }
}

/** The lines of a response, as arrays: one array for each chunk that completes a line. */
export async function* lineBatches(response: Response, options: LineOptions = {}): AsyncGenerator<string[]> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const lines = new LineBuffer(options)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const batch = lines.push(value)
      if (batch.length > 0) yield batch
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
