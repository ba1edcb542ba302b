// A reader of DER, as far as certificate requests need it. Error messages are those of Go's encoding/asn1.

/** The bytes are not valid DER. */
export class DerError extends Error {}

/** One value in DER encoding. */
export interface DerValue {
  readonly tag: number
  readonly content: Uint8Array
  /** The content with its header: the bytes that a signature covers. */
  readonly raw: Uint8Array
}

/** The tags that certificate requests use. */
export const derTags = { integer: 0x02, bitString: 0x03, objectId: 0x06, sequence: 0x30, set: 0x31 } as const

const syntaxError = (text: string): DerError => new DerError(`asn1: syntax error: ${text}`)

/** Reads consecutive values from `bytes`, at most `most` of them. Throws DerError. */
export function readValues(bytes: Uint8Array, most = 100): DerValue[] {
  const values: DerValue[] = []
  for (let at = 0; at < bytes.length && values.length < most; at += values.at(-1)?.raw.length ?? bytes.length)
    values.push(readValue(bytes.subarray(at)))
  return values
}

/** Reads the values inside `value`, which must have the tag `tag`. Throws DerError. */
export function readChildren({ tag: found, content }: DerValue, tag: number): DerValue[] {
  if (found !== tag) throw new DerError(`asn1: structure error: tags don't match (${tag} vs ${found})`)
  return readValues(content)
}

/** Reads the first value in `bytes`; more bytes may follow it. Throws DerError. */
export function readValue(bytes: Uint8Array): DerValue {
  const [tag, first] = bytes
  if (tag === undefined) throw syntaxError('sequence truncated')
  if (first === undefined) throw syntaxError('truncated tag or length')
  const longForm = first & 0x80
  const count = first & 0x7f
  if (longForm && count === 0) throw syntaxError('indefinite length found (not DER)')
  if (longForm && count > 4) throw new DerError('asn1: structure error: length too large')
  const start = longForm ? 2 + count : 2
  if (bytes.length < start) throw syntaxError('truncated tag or length')
  const length = longForm ? bytes.subarray(2, start).reduce((sum, byte) => sum * 256 + byte, 0) : first
  if (bytes.length < start + length) throw syntaxError('data truncated')
  return { tag, content: bytes.subarray(start, start + length), raw: bytes.subarray(0, start + length) }
}
