// Decodes header values: Node gives them as latin1, but clients send UTF-8.
import { Buffer } from 'node:buffer'

const ascii = /^[\x00-\x7f]*$/
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The value decoded as UTF-8; unchanged if it is not valid UTF-8. */
export function headerText(value: string): string {
  if (ascii.test(value)) return value
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}
