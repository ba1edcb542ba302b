// JSON.parse for text from other programs. Two rare kinds of documents are read by the code below. JSON.parse rounds
// integers beyond 2^53, which Kubernetes keeps exact up to 64 bits. V8 (Node 24.21, nodejs/node#63785) reads a member
// name that is a single escape, such as "\n", as "\" once any document in the process had the member "\" at the same
// place: one tenant's object would change the names in another's.
import { integerOfText, type JsonValue } from '#apimachinery/meta/index.ts'

/** A member name that is a single escape. May also match the end of a longer name, which only costs time. */
const singleEscapeName = /"\\(?:u[0-9a-fA-F]{4}|[^u])"\s*:/

/** The fewest digits of an integer beyond 2^53. */
const longDigits = 16

/**
 * Parses a JSON text; integers beyond 2^53 become bigints (see JsonValue). Throws SyntaxError as JSON.parse does. Depth
 * is bounded by the caller.
 */
export function parseJsonText(text: string): JsonValue {
  const value = JSON.parse(text) as JsonValue
  // Valid JSON from here on: the reader below need not check anything.
  return hasLongNumber(text) || (text.includes('\\') && singleEscapeName.test(text))
    ? new ValidJsonReader(text).read()
    : value
}

/**
 * True if the text has a run of digits that may be an integer beyond 2^53. Tests one character in 16, which every such
 * run covers, so that the search takes a few hundredths of the time of JSON.parse.
 */
function hasLongNumber(text: string): boolean {
  for (let i = longDigits - 1; i < text.length; i += longDigits) {
    if (!isDigit(text.charCodeAt(i))) continue
    let [from, to] = [i, i + 1]
    while (isDigit(text.charCodeAt(from - 1))) from--
    while (isDigit(text.charCodeAt(to))) to++
    if (to - from >= longDigits && beginsNumber(text, from)) return true
    // The next run begins after `to`.
    i = to
  }
  return false
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57
}

/** False for digits after a letter or a point: most long runs are in names and hashes. */
function beginsNumber(text: string, at: number): boolean {
  const before = text[at - 1] === '-' ? at - 2 : at - 1
  return before < 0 || ':,[ \t\r\n'.includes(text.charAt(before))
}

class ValidJsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JsonValue {
    const char = this.#next()
    if (char === '{') return this.#object()
    if (char === '[') return this.#array()
    if (char === '"') return this.#string()
    const from = this.#at
    while (this.#at < this.#text.length && !',]} \t\r\n'.includes(this.#text[this.#at] ?? '')) this.#at++
    const literal = this.#text.slice(from, this.#at)
    return /^-?\d+$/.test(literal) ? integerOfText(literal) : (JSON.parse(literal) as JsonValue)
  }

  #object(): JsonValue {
    const members: [string, JsonValue][] = []
    this.#at++
    while (this.#next() !== '}') {
      const name = this.#string()
      this.#next()
      this.#at++ // the colon
      members.push([name, this.read()])
      if (this.#next() === ',') this.#at++
    }
    this.#at++
    return Object.fromEntries(members)
  }

  #array(): JsonValue {
    const items: JsonValue[] = []
    this.#at++
    while (this.#next() !== ']') {
      items.push(this.read())
      if (this.#next() === ',') this.#at++
    }
    this.#at++
    return items
  }

  #string(): string {
    const from = this.#at
    for (this.#at++; this.#text[this.#at] !== '"'; this.#at++) if (this.#text[this.#at] === '\\') this.#at++
    this.#at++
    return JSON.parse(this.#text.slice(from, this.#at)) as string
  }

  /** The next character that is not white space. */
  #next(): string {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at++
    return this.#text[this.#at] ?? ''
  }
}
