// The text of an expression, and the errors that are found in it.

export interface SourceLocation {
  /** From 1; -1 where there is no place. */
  readonly line: number
  /** In code points from 0; -1 where there is no place. */
  readonly column: number
}

interface SourceError {
  readonly location: SourceLocation
  readonly message: string
}

export const noLocation: SourceLocation = { line: -1, column: -1 }

const maxReported = 100
const maxSnippetBytes = 16_384

/** Where an index into the text is, in lines and code points. */
export function locationOf(text: string, index: number): SourceLocation {
  let line = 1
  let start = 0
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) {
    line += 1
    start = at + 1
  }
  return { line, column: codePointCount(text.slice(start, index)) }
}

/** How many Unicode code points a string has. A lone surrogate counts as one. */
export function codePointCount(text: string): number {
  let pairs = 0
  for (let i = 1; i < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) !== 0xdc00 || (text.charCodeAt(i - 1) & 0xfc00) !== 0xd800) continue
    pairs += 1
    i += 1
  }
  return text.length - pairs
}

/** The errors of one expression, printed as cel-go prints them. */
export class SourceErrors {
  readonly #text: string
  readonly #errors: SourceError[] = []
  #count = 0

  constructor(text: string) {
    this.#text = text
  }

  get count(): number {
    return this.#count
  }

  add(location: SourceLocation, message: string): void {
    this.#count += 1
    if (this.#count <= maxReported) this.#errors.push({ location, message })
  }

  addAt(index: number | undefined, message: string): void {
    this.add(index === undefined ? noLocation : locationOf(this.#text, index), message)
  }

  /** All errors by place, one after the other, each with the line it is in. */
  toString(): string {
    const sorted = this.#errors.toSorted(({ location: a }, { location: b }) => a.line - b.line || a.column - b.column)
    const shown = sorted.map((error) => this.#show(error))
    if (this.#count > maxReported) shown.push(`${String(this.#count - maxReported)} more errors were truncated`)
    return shown.join('\n')
  }

  #show({ location: { line, column }, message }: SourceError): string {
    const head = `ERROR: <input>:${String(line)}:${String(column + 1)}: ${message}`
    const snippet = this.#text.split('\n')[line - 1]
    if (snippet === undefined || Buffer.byteLength(snippet) > maxSnippetBytes) return head
    const points = Array.from(snippet.replaceAll('\t', ' '))
    const dots = points.slice(0, Math.max(column, 0)).map((point) => (isWide(point) ? '\uff0e' : '.'))
    return `${head}\n | ${points.join('')}\n | ${dots.join('')}${isWide(points[column] ?? '') ? '\uff3e' : '^'}`
  }
}

const isWide = (point: string): boolean => (point.codePointAt(0) ?? 0) > 0x7f
