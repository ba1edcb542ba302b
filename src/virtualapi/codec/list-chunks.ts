// Encodes a list in chunks, so that thousands of objects are neither copied into one buffer nor encoded without a pause.
import { Buffer } from 'node:buffer'
import { encodeJson } from '../../apimachinery/meta/index.ts'
import type { Chunks } from '../exchange/exchange.ts'
import { asBuffer, metadataStart } from '../resources/object-bytes.ts'
import { unpackedLength, unpackManagers } from '../resources/packed-managers.ts'

export interface ListMeta {
  /** Absent for objects that are not stored. */
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
}

/** Minimum size of a chunk of copied bytes, except the last: encrypting and writing it takes about 0.1 ms. */
export const minChunkedBytes = 64 * 1024
/** Minimum size of a chunk of objects that are decoded and encoded again, which is slower. */
const encodedCharacters = 16 * 1024

/** The `convert` of objects that are listed as they are stored. */
export const unchanged = unpackManagers

/**
 * A list of objects joined as bytes, not decoded. `head`, if given, replaces kind and apiVersion of every item; `convert` makes
 * the requested version of stored bytes, or is `unchanged`.
 */
export function listChunks(
  kind: string,
  apiVersion: string,
  metadata: ListMeta,
  items: readonly Uint8Array[],
  head: string | undefined,
  convert: (bytes: Uint8Array) => Uint8Array,
): Chunks {
  const start = Buffer.from(
    `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`,
  )
  const lead = head === undefined ? undefined : Buffer.from(`{${head}`)
  return {
    ...(convert === unchanged ? { bytes: start.length + bytesOf(items, lead) + end.length } : {}),
    release: (chunk) => buffers.give(chunk),
    [Symbol.iterator]: () => joinedChunks({ start, lead, items, convert }),
  }
}

const end = ']}\n'

/** The size of the items with commas between them. */
function bytesOf(items: readonly Uint8Array[], lead: Buffer | undefined): number {
  let bytes = Math.max(0, items.length - 1)
  let from = 0
  for (const item of items) {
    bytes += unpackedLength(item)
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

function* joinedChunks({ start, lead, items, convert }: Joining): Generator<Uint8Array> {
  const leadBytes = lead?.length ?? 0
  const sources: Buffer[] = []
  let from = 0
  for (let next = 0, isFirst = true; next < items.length || isFirst; isFirst = false) {
    const first = next
    sources.length = 0
    let maxSize = (isFirst ? start.length : 0) + end.length
    for (; next < items.length && maxSize < minChunkedBytes; next++) {
      const source = asBuffer(convert(items[next] as Uint8Array))
      sources.push(source)
      maxSize += leadBytes + source.length + 1
    }
    const chunk = buffers.take(maxSize)
    let offset = isFirst ? start.copy(chunk, 0) : 0
    for (let i = 0; i < sources.length; i++) {
      const source = sources[i] as Buffer
      if (first + i > 0) chunk[offset++] = 0x2c
      if (lead !== undefined) {
        from = metadataStart(source, from)
        offset += lead.copy(chunk, offset)
      }
      offset += source.copy(chunk, offset, from)
    }
    if (next === items.length) offset += chunk.write(end, offset, 'latin1')
    yield chunk.subarray(0, offset)
  }
}

/**
 * A bounded pool of buffers: allocating one per chunk would keep the garbage collector busy. A buffer that is not returned is
 * garbage collected.
 */
class PieceBuffers {
  readonly #bytes = minChunkedBytes + 16 * 1024
  readonly #maxFree = 32
  readonly #free: Buffer[] = []

  /** A buffer of at least this many bytes. */
  take(bytes: number): Buffer {
    if (bytes < minChunkedBytes || bytes > this.#bytes) return Buffer.allocUnsafeSlow(bytes)
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes)
  }

  /** Returns a buffer of `take`, or a part of it, that nobody reads any more. */
  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength === this.#bytes && this.#free.length < this.#maxFree) this.#free.push(Buffer.from(buffer))
  }
}

const buffers = new PieceBuffers()

/** The JSON of `document` with a last member `name`: the list of `textOf` of each item. */
export function* textChunks<T>(
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
