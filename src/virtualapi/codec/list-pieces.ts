// A list as bytes, a piece at a time: thousands of objects are neither copied into one buffer nor encoded in one go.
import { Buffer } from 'node:buffer'
import { encodeJson } from '../../apimachinery/meta/index.ts'
import type { Pieces } from '../exchange/exchange.ts'
import { asBuffer, metadataStart } from '../resources/object-bytes.ts'

export interface ListMeta {
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

/** Least size of a piece of copied bytes, save for the last: about 0.1 ms until it is encrypted and written. */
export const pieceBytes = 64 * 1024
/** Of what is decoded and encoded again, which takes longer. */
const encodedCharacters = 16 * 1024

/** For bytes that are listed as they are. */
export const asIs = (bytes: Uint8Array): Uint8Array => bytes

/**
 * Objects joined, not decoded. `head` replaces the kind and apiVersion of every item, if given; `convert` is asIs, or what
 * makes of bytes at rest those of the version asked for.
 */
export function listPieces(
  kind: string,
  apiVersion: string,
  metadata: ListMeta,
  items: readonly Uint8Array[],
  head: string | undefined,
  convert: (bytes: Uint8Array) => Uint8Array,
): Pieces {
  const start = Buffer.from(
    `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`,
  )
  const lead = head === undefined ? undefined : Buffer.from(`{${head}`)
  return {
    ...(convert === asIs ? { bytes: start.length + bytesOf(items, lead) + end.length } : {}),
    release: (piece) => buffers.give(piece),
    [Symbol.iterator]: () => joinedPieces({ start, lead, items, convert }),
  }
}

const end = ']}\n'

/** Of the items with commas between them. */
function bytesOf(items: readonly Uint8Array[], lead: Buffer | undefined): number {
  let bytes = Math.max(0, items.length - 1)
  let from = 0
  for (const item of items) {
    bytes += item.length
    if (lead === undefined) continue
    from = metadataStart(asBuffer(item), from)
    bytes += lead.length - from
  }
  return bytes
}

interface Joining {
  readonly start: Buffer
  readonly lead: Buffer | undefined
  readonly items: readonly Uint8Array[]
  readonly convert: (bytes: Uint8Array) => Uint8Array
}

function* joinedPieces({ start, lead, items, convert }: Joining): Generator<Uint8Array> {
  const leadBytes = lead?.length ?? 0
  const sources: Buffer[] = []
  let from = 0
  for (let next = 0, isFirst = true; next < items.length || isFirst; isFirst = false) {
    const first = next
    sources.length = 0
    let most = (isFirst ? start.length : 0) + end.length
    for (; next < items.length && most < pieceBytes; next++) {
      const source = asBuffer(convert(items[next] as Uint8Array))
      sources.push(source)
      most += leadBytes + source.length + 1
    }
    const piece = buffers.take(most)
    let at = isFirst ? start.copy(piece, 0) : 0
    for (let i = 0; i < sources.length; i++) {
      const source = sources[i] as Buffer
      if (first + i > 0) piece[at++] = 0x2c
      if (lead !== undefined) {
        from = metadataStart(source, from)
        at += lead.copy(piece, at)
      }
      at += source.copy(piece, at, from)
    }
    if (next === items.length) at += piece.write(end, at, 'latin1')
    yield piece.subarray(0, at)
  }
}

/**
 * Memory of pieces that were sent, for the next ones: new memory for each of them is what the collector runs for. Bounded;
 * what is not given back, the collector has.
 */
class PieceBuffers {
  readonly #bytes = pieceBytes + 16 * 1024
  readonly #kept = 32
  readonly #free: Buffer[] = []

  /** At least so many bytes. */
  take(bytes: number): Buffer {
    if (bytes < pieceBytes || bytes > this.#bytes) return Buffer.allocUnsafeSlow(bytes)
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes)
  }

  /** A piece of what was taken, which nobody reads any more. */
  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength === this.#bytes && this.#free.length < this.#kept) this.#free.push(Buffer.from(buffer))
  }
}

const buffers = new PieceBuffers()

/** `document` with a last member `name`: the list of what `textOf` makes of each item. */
export function* textPieces<T>(
  document: object,
  name: string,
  items: readonly T[],
  textOf: (item: T) => string,
): Generator<Uint8Array> {
  let text = `${encodeJson(document).slice(0, -1)},${JSON.stringify(name)}:[`
  for (const [index, item] of items.entries()) {
    text += index > 0 ? `,${textOf(item)}` : textOf(item)
    if (text.length < encodedCharacters) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(`${text}]}\n`)
}
