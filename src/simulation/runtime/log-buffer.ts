// The last lines of a container's log, and the readers that follow it.

export interface LogLine {
  readonly atMs: number
  readonly text: string
}

const maxLines = 300
const maxLineLength = 300

export class LogBuffer {
  readonly #lines: LogLine[] = []
  readonly #readers = new Set<(line: LogLine | undefined) => void>()
  #isClosed = false

  get lines(): readonly LogLine[] {
    return this.#lines
  }

  write(text: string): void {
    const line = { atMs: Date.now(), text: text.slice(0, maxLineLength) }
    this.#lines.push(line)
    if (this.#lines.length > maxLines) this.#lines.shift()
    for (const reader of this.#readers) reader(line)
  }

  /** Ends the readers: the container has ended. */
  close(): void {
    this.#isClosed = true
    for (const reader of this.#readers) reader(undefined)
    this.#readers.clear()
  }

  /** The lines from now on, until the container ends or the signal aborts. A reader that is too slow misses lines. */
  async *follow(signal: AbortSignal): AsyncGenerator<LogLine> {
    const queue: (LogLine | undefined)[] = []
    let wake = (): void => undefined
    const reader = (line: LogLine | undefined): void => {
      if (queue.length < maxLines || line === undefined) queue.push(line)
      wake()
    }
    if (this.#isClosed) return
    this.#readers.add(reader)
    const abort = (): void => wake()
    signal.addEventListener('abort', abort, { once: true })
    try {
      while (!signal.aborted) {
        if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve))
        for (const line of queue.splice(0)) {
          if (line === undefined) return
          yield line
        }
      }
    } finally {
      signal.removeEventListener('abort', abort)
      this.#readers.delete(reader)
    }
  }
}
