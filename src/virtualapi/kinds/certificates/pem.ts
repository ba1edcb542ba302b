// A reader of PEM: base64 between a BEGIN and an END line (RFC 7468).

/** One decoded block. */
export interface PemBlock {
  readonly type: string
  readonly hasHeaders: boolean
  readonly bytes: Uint8Array
}

const begin = '-----BEGIN '
const end = '-----END '
const dashes = '-----'

/** The blocks of a text, in order. Skips text between blocks and malformed blocks. */
export function* pemBlocks(text: string): Generator<PemBlock> {
  for (let at = nextLine(text, begin, 0); at >= 0;) {
    const typeEnd = text.indexOf(dashes, at + begin.length)
    const close = nextLine(text, end, at)
    if (typeEnd < 0 || close < 0) return
    const type = text.slice(at + begin.length, typeEnd)
    if (!type.includes('\n') && text.startsWith(`${end}${type}${dashes}`, close)) {
      const block = blockOf(type, text.slice(typeEnd + dashes.length, close))
      if (block !== undefined) yield block
    }
    at = nextLine(text, begin, close)
  }
}

/** Offset of the next line that starts with `word`; -1 if there is none. */
function nextLine(text: string, word: string, from: number): number {
  if (from === 0 && text.startsWith(word)) return 0
  const at = text.indexOf(`\n${word}`, from === 0 ? 0 : from - 1)
  return at < 0 ? -1 : at + 1
}

function blockOf(type: string, body: string): PemBlock | undefined {
  const lines = body.trim().split(/\r?\n/)
  const firstPlain = lines.findIndex((line) => !line.includes(':'))
  const data = (firstPlain < 0 ? [] : lines.slice(firstPlain)).join('').replace(/\s/g, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(data) || data.length % 4 !== 0) return undefined
  return { type, hasHeaders: firstPlain !== 0, bytes: Buffer.from(data, 'base64') }
}
