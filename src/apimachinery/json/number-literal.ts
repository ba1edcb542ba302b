// Numbers as they are written: Go takes `1.0` for no integer, and shows what was sent.
import type { JsonValue } from '../meta/index.ts'

/** A number that is not written as a plain integer. */
export class NumberLiteral {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type LiteralJson = JsonValue | NumberLiteral | LiteralJson[] | { [key: string]: LiteralJson }

/** Reads a JSON document that is known to be one, once more, with its literals. */
export function parseLiterals(bytes: Uint8Array): LiteralJson {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  return JSON.parse(text, withLiteral) as LiteralJson
}

function withLiteral(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined || /^-?\d{1,15}$/.test(source)) return value
  return new NumberLiteral(source)
}
