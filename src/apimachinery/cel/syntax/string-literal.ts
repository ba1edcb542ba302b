// The values that string and bytes literals stand for.

const simple: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  '\\': 92,
  "'": 39,
  '"': 34,
  '`': 96,
  '?': 63,
}

/**
 * The text of a string literal, quotes and prefix included. An object with what is wrong where it stands for no text.
 */
export function unescapeString(literal: string): string | { error: string } {
  const { body, raw } = bodyOf(literal)
  if (raw || !body.includes('\\')) return body
  let out = ''
  for (let i = 0; i < body.length;) {
    const char = body[i] ?? ''
    if (char !== '\\') {
      out += char
      i += 1
      continue
    }
    const { code, length } = escapeAt(body, i)
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return { error: 'invalid unicode code point' }
    out += String.fromCodePoint(code)
    i += length
  }
  return out
}

/** The bytes of a bytes literal, quotes and prefix included. */
export function unescapeBytes(literal: string): Uint8Array | { error: string } {
  const { body, raw } = bodyOf(literal.slice(1))
  if (raw || !body.includes('\\')) return Buffer.from(body)
  const parts: Uint8Array[] = []
  let plain = ''
  for (let i = 0; i < body.length;) {
    const char = body[i] ?? ''
    if (char !== '\\') {
      plain += char
      i += 1
      continue
    }
    if (/[uU]/.test(body[i + 1] ?? '')) return { error: 'unable to unescape string' }
    const { code, length } = escapeAt(body, i)
    parts.push(Buffer.from(plain), Uint8Array.of(code))
    plain = ''
    i += length
  }
  return Buffer.concat([...parts, Buffer.from(plain)])
}

function bodyOf(literal: string): { body: string; raw: boolean } {
  const raw = /^[rR]/.test(literal)
  // Line ends of the source count as \n, as in cel-go.
  const text = (raw ? literal.slice(1) : literal).replaceAll('\r\n', '\n').replaceAll('\r', '\n')
  const quotes = text.length >= 6 && /^("""|''')/.test(text) ? 3 : 1
  return { body: text.slice(quotes, -quotes), raw }
}

// The lexer lets only whole escape sequences through.
function escapeAt(body: string, at: number): { code: number; length: number } {
  const letter = body[at + 1] ?? ''
  const known = simple[letter]
  if (known !== undefined) return { code: known, length: 2 }
  const digits = letter === 'u' ? 4 : letter === 'U' ? 8 : 2
  if (/[xXuU]/.test(letter)) return { code: parseInt(body.slice(at + 2, at + 2 + digits), 16), length: 2 + digits }
  return { code: parseInt(body.slice(at + 1, at + 4), 8), length: 4 }
}
