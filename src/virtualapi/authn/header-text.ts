// Text in header values: Node gives every byte as a character of its own, and clients send UTF-8.
import { Buffer } from 'node:buffer'

const ascii = /^[\x00-\x7f]*$/
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The value as its sender meant it. What is no UTF-8 stays as it came. */
export function headerText(value: string): string {
  if (ascii.test(value)) return value
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}
