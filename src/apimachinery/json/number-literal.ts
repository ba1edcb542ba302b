// Keeps numbers as they are written: Go does not take `1.0` for an integer, and its messages show the text that was
// sent.
import { jsonEqual } from './json-equal.ts'
import { integerOfText, isExactInteger, type JsonValue, isJsonObject } from '#apimachinery/meta/index.ts'

/** A number that is not written as a plain integer of 64 bits. */
export class NumberLiteral {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.text)
  }
}

export type LiteralJson = JsonValue | NumberLiteral | LiteralJson[] | { [key: string]: LiteralJson }

/** Equality of a value and a value in which some numbers are kept as they are written: Go compares their texts. */
export function equalAsWritten(value: JsonValue, written: LiteralJson): boolean {
  if (written instanceof NumberLiteral) return JSON.stringify(value) === written.text
  if (Array.isArray(written))
    return (
      Array.isArray(value) &&
      value.length === written.length &&
      written.every((item, index) => equalAsWritten(value[index] ?? null, item))
    )
  if (!isJsonObject(written)) return jsonEqual(value, written)
  if (!isJsonObject(value)) return false
  const keys = Object.keys(written)
  return (
    keys.length === Object.keys(value).length &&
    keys.every((key) => Object.hasOwn(value, key) && equalAsWritten(value[key] ?? null, written[key] ?? null))
  )
}

/** Parses a valid JSON document a second time, keeping the text of each number. */
export function parseLiterals(bytes: Uint8Array): LiteralJson {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  return JSON.parse(text, withLiteral) as LiteralJson
}

function withLiteral(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined) return value
  const exact = /^-?\d+$/.test(source) ? integerOfText(source) : undefined
  // A number beyond 64 bits is kept as text, because messages show it as it was sent.
  return exact === undefined || !isExactInteger(exact) ? new NumberLiteral(source) : exact
}
