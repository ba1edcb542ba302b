// Scans a whole JSON document that JSON.parse refused or shrank: names duplicate fields by their path, and gives Go's
// message for a syntax error. Iterative, so that a deep document cannot overflow the stack.

export interface JsonScan {
  /** Go's text of the first syntax error. */
  error?: string
  /** Paths of duplicate fields in order of appearance, each once. */
  duplicates: string[]
}

/** Maximum number of duplicates reported, as in Go's strict decoder. */
const maxDuplicates = 100

interface Level {
  /** Keys seen so far; undefined in an array. */
  keys: Set<string> | undefined
  key: string
  index: number
}

/** Scans the document. Runs only for bodies that JSON.parse refuses or shrinks, so it need not be fast. */
export function scanJson(text: string): JsonScan {
  const scanner = new Scanner(text)
  try {
    scanner.run()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { error: error.message, duplicates: scanner.duplicates }
  }
  return { duplicates: scanner.duplicates }
}

class Scanner {
  readonly duplicates: string[] = []
  readonly #text: string
  readonly #levels: Level[] = []
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  run(): void {
    for (;;) {
      const closed = this.#value()
      if (!closed) continue
      if (this.#afterValue()) return
    }
  }

  /** Reads one value. False if it opened a level whose first item comes next. */
  #value(): boolean {
    const char = this.#peek()
    if (char === '{' || char === '[') {
      this.#at++
      const isObject = char === '{'
      this.#levels.push({ keys: isObject ? new Set() : undefined, key: '', index: 0 })
      const next = this.#peek()
      if (next === (isObject ? '}' : ']')) {
        this.#at++
        this.#levels.pop()
        return true
      }
      if (isObject) this.#key('looking for beginning of object key string')
      return false
    }
    if (char === '"') this.#string()
    else if (char === '-' || (char >= '0' && char <= '9')) this.#number()
    else if (char === 't') this.#literal('true')
    else if (char === 'f') this.#literal('false')
    else if (char === 'n') this.#literal('null')
    else this.#fail('looking for beginning of value')
    return true
  }

  /** Reads what follows a value. True at the end of the document. */
  #afterValue(): boolean {
    for (;;) {
      const level = this.#levels.at(-1)
      if (level === undefined) {
        this.#space()
        if (this.#at < this.#text.length) this.#fail('after top-level value')
        return true
      }
      const char = this.#peek()
      this.#at++
      if (char === ',') {
        level.index++
        if (level.keys !== undefined) {
          this.#peek()
          this.#key('looking for beginning of object key string')
        }
        return false
      }
      if (char !== (level.keys === undefined ? ']' : '}')) {
        this.#at--
        this.#fail(level.keys === undefined ? 'after array element' : 'after object key:value pair')
      }
      this.#levels.pop()
    }
  }

  #key(context: string): void {
    if (this.#text[this.#at] !== '"') this.#fail(context)
    const key = this.#string()
    if (this.#peek() !== ':') this.#fail('after object key')
    this.#at++
    const level = this.#levels.at(-1)
    if (level?.keys === undefined) return
    level.key = key
    if (level.keys.has(key) && this.duplicates.length < maxDuplicates) {
      const path = this.#path()
      if (!this.duplicates.includes(path)) this.duplicates.push(path)
    }
    level.keys.add(key)
  }

  #path(): string {
    let path = ''
    for (const { keys, key, index } of this.#levels) {
      if (keys === undefined) path += `[${String(index)}]`
      else path += path === '' ? key : `.${key}`
    }
    return path
  }

  #string(): string {
    const start = this.#at++
    for (;;) {
      const char = this.#text[this.#at]
      if (char === undefined) this.#fail('')
      if (char === '"') break
      if (char < ' ') this.#fail('in string literal')
      if (char === '\\') {
        this.#at++
        const escape = this.#text[this.#at]
        if (escape === 'u') {
          for (let i = 0; i < 4; i++) {
            this.#at++
            if (!/^[0-9a-fA-F]$/.test(this.#text[this.#at] ?? '')) this.#fail('in \\u hexadecimal character escape')
          }
        } else if (escape === undefined || !'"\\/bfnrt'.includes(escape)) this.#fail('in string escape code')
      }
      this.#at++
    }
    this.#at++
    return JSON.parse(this.#text.slice(start, this.#at)) as string
  }

  #number(): void {
    if (this.#text[this.#at] === '-') this.#at++
    if (this.#text[this.#at] === '0') this.#at++
    else this.#digits('in numeric literal')
    if (this.#text[this.#at] === '.') {
      this.#at++
      this.#digits('after decimal point in numeric literal')
    }
    if (this.#text[this.#at] === 'e' || this.#text[this.#at] === 'E') {
      this.#at++
      if (this.#text[this.#at] === '+' || this.#text[this.#at] === '-') this.#at++
      this.#digits('in exponent of numeric literal')
    }
  }

  #digits(context: string): void {
    const start = this.#at
    while ((this.#text[this.#at] ?? '') >= '0' && (this.#text[this.#at] ?? '') <= '9') this.#at++
    if (this.#at === start) this.#fail(context)
  }

  #literal(word: string): void {
    for (let i = 0; i < word.length; i++, this.#at++) {
      const expected = word.charAt(i)
      if (this.#text[this.#at] !== expected) this.#fail(`in literal ${word} (expecting '${expected}')`)
    }
  }

  #space(): void {
    while (this.#at < this.#text.length && ' \t\r\n'.includes(this.#text.charAt(this.#at))) this.#at++
  }

  #peek(): string {
    this.#space()
    return this.#text[this.#at] ?? ''
  }

  #fail(context: string): never {
    const point = this.#text.codePointAt(this.#at)
    if (point === undefined) throw new SyntaxError('unexpected end of JSON input')
    // Go reports a byte: the first one of a character with several bytes.
    const char = String.fromCodePoint(point < 0x80 ? point : (Buffer.from(String.fromCodePoint(point))[0] ?? point))
    const shown =
      char === "'" ? "'\\''" : char === '"' ? `'"'` : `'${JSON.stringify(char).slice(1, -1).replace('\\u00', '\\x')}'`
    throw new SyntaxError(`invalid character ${shown} ${context}`)
  }
}
