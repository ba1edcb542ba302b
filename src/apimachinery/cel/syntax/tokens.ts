// Splits the text of an expression into tokens, by the lexer rules of CEL's grammar.

export interface Token {
  /** The text of an operator, bracket or keyword; else the name of the class. */
  readonly type: string
  readonly text: string
  /** Index of its first character. */
  readonly start: number
}

const escape =
  String.raw`\\(?:[abfnrtv"'\\?` +
  '`' +
  String.raw`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})`
const partOfEscape = String.raw`\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?`
const text = [
  `"""(?:${escape}|[^\\\\])*?"""`,
  `'''(?:${escape}|[^\\\\])*?'''`,
  `"(?:${escape}|[^\\\\"\\n\\r])*"`,
  `'(?:${escape}|[^\\\\'\\n\\r])*'`,
  `[rR]"""[^]*?"""`,
  `[rR]'''[^]*?'''`,
  `[rR]"[^"\\n\\r]*"`,
  `[rR]'[^'\\n\\r]*'`,
].join('|')

const hidden = /(?:[\t \r\n\f]+|\/\/[^\n]*)+/y
const string = new RegExp(`(?:${text})`, 'uy')
const bytes = new RegExp(`[bB](?:${text})`, 'uy')
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y
const escapedIdentifier = /`[A-Za-z0-9_.\-/ ]+`/y
const float = /(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)/y
const unsigned = /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/y
const integer = /(?:0x[0-9a-fA-F]+|[0-9]+)/y
const operator = /==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y
const keywords: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null'])

const classes: readonly (readonly [string, RegExp])[] = [
  ['BYTES', bytes],
  ['STRING', string],
  ['IDENTIFIER', identifier],
  ['NUM_FLOAT', float],
  ['NUM_UINT', unsigned],
  ['NUM_INT', integer],
  ['OPERATOR', operator],
  ['ESC_IDENTIFIER', escapedIdentifier],
]

/** All tokens, then one of type `<EOF>`. Characters that begin no token are reported and left out. */
export function tokenize(source: string, unknown: (index: number, text: string) => void): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    hidden.lastIndex = at
    if (hidden.test(source)) at = hidden.lastIndex
    if (at >= source.length) break
    const token = tokenAt(source, at)
    if (token === undefined) {
      const rest = unknownAt(source, at)
      unknown(at, rest)
      at += rest.length
      continue
    }
    tokens.push(token)
    at += token.text.length
  }
  tokens.push({ type: '<EOF>', text: '<EOF>', start: source.length })
  return tokens
}

function tokenAt(source: string, start: number): Token | undefined {
  for (const [type, pattern] of classes) {
    pattern.lastIndex = start
    if (!pattern.test(source)) continue
    const found = source.slice(start, pattern.lastIndex)
    return { type: type === 'OPERATOR' || keywords.has(found) ? found : type, text: found, start }
  }
  return undefined
}

// A string that is not closed is one piece up to the place where no rule goes on, as the generated lexer reports it.
function unknownAt(source: string, start: number): string {
  const first = source[start] ?? ''
  if (first === '"' || first === "'") {
    const open = new RegExp(`${first}(?:${escape}|[^\\\\${first}\\n\\r])*(?:${partOfEscape})?[^]?`, 'uy')
    open.lastIndex = start
    if (open.test(source)) return source.slice(start, open.lastIndex)
  }
  if (first === '&' || first === '|' || first === '=') return source.slice(start, start + 2)
  return String.fromCodePoint(source.codePointAt(start) ?? 0)
}
