// JSON.parse for text that others wrote. V8 (Node 24.21, nodejs/node#63785) reads a member name that is a single escape,
// such as "\n", as "\" once any document in the process had the member "\" at the same place: one tenant's object
// would change the names in another's. Documents with such names are rare, and read by the code below.
import type { JsonValue } from '../meta/index.ts'

/** A member name of one escape. May also match the end of a longer name, which only costs time. */
const singleEscapeName = /"\\(?:u[0-9a-fA-F]{4}|[^u])"\s*:/

/** Parses a JSON text. Throws SyntaxError as JSON.parse does. Depth is bounded by the caller. */
export function parseJsonText(text: string): JsonValue {
  const value = JSON.parse(text) as JsonValue
  // Valid JSON from here on: the reader below need not check anything.
  return text.includes('\\') && singleEscapeName.test(text) ? new ValidJsonReader(text).read() : value
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
    return JSON.parse(this.#text.slice(from, this.#at)) as JsonValue
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
