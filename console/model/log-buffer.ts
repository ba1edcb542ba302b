// The last lines of logs, from several containers in the order in which they arrive.

export interface LogLine {
  /** Counts all lines that ever arrived, so that each has a key. */
  readonly number: number
  readonly container: string
  readonly text: string
}

/** Keeps the last `max` lines. */
export class LogBuffer {
  #lines: LogLine[] = []
  #count = 0
  readonly #max: number

  constructor(max = 10_000) {
    this.#max = max
  }

  get lines(): readonly LogLine[] {
    return this.#lines
  }

  /** How many lines arrived and are no longer kept. */
  get dropped(): number {
    return this.#count - this.#lines.length
  }

  add(container: string, texts: readonly string[]): void {
    const added = texts.map((text) => ({ number: this.#count++, container, text }))
    // A copy, because a signal sees only new arrays.
    this.#lines = [...this.#lines, ...added].slice(-this.#max)
  }
}

/** The lines that contain the text, in any case. */
export function searchLines(lines: readonly LogLine[], wanted: string): readonly LogLine[] {
  if (wanted === '') return lines
  const lower = wanted.toLowerCase()
  return lines.filter(({ text }) => text.toLowerCase().includes(lower))
}

/** The text in parts; parts with an odd index are matches. */
export function matchParts(text: string, wanted: string): string[] {
  if (wanted === '') return [text]
  const parts: string[] = []
  const [lower, lowerWanted] = [text.toLowerCase(), wanted.toLowerCase()]
  let from = 0
  for (let at = lower.indexOf(lowerWanted); at >= 0; at = lower.indexOf(lowerWanted, from)) {
    parts.push(text.slice(from, at), text.slice(at, at + wanted.length))
    from = at + wanted.length
  }
  return [...parts, text.slice(from)]
}
