// Keeps numbers as they are written: Go does not take `1.0` for an integer, and its messages show the text that was
// sent.
import type { JsonValue } from '../meta/index.ts'

/** A number that is not written as a plain integer. */
export class NumberLiteral {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type LiteralJson = JsonValue | NumberLiteral | LiteralJson[] | { [key: string]: LiteralJson }

/** Parses a valid JSON document a second time, keeping the text of each number. */
export function parseLiterals(bytes: Uint8Array): LiteralJson {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  return JSON.parse(text, withLiteral) as LiteralJson
}

function withLiteral(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined || /^-?\d{1,15}$/.test(source)) return value
  return new NumberLiteral(source)
}
