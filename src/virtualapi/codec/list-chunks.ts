// Encodes a list in chunks, so that thousands of objects are neither copied into one buffer nor encoded without a
// pause.
import { Buffer } from 'node:buffer'
import { encodeJson } from '#apimachinery/meta/index.ts'
import type { Chunks } from '#virtualapi/request/exchange.ts'
import { asBuffer, metadataStart } from '#virtualapi/kinds/resources/object-bytes.ts'
import { ListSegments, type ListItem } from './list-segments.ts'

export interface ListMeta {
  /** Absent for lists of objects that are not stored. */
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
  /** Present if a shardSelector was applied. */
  shardInfo?: { readonly selector: string }
}

/**
 * Minimum size of a chunk of copied bytes, except the last one. Encrypting and writing such a chunk takes about 0.1 ms.
 */
export const minChunkedBytes = 64 * 1024
/** Minimum size of a chunk of objects that are decoded and encoded again, which is slower. */
const encodedCharacters = 16 * 1024
/** A chunk ends after this many milliseconds, however small it is. */
const maxChunkMs = 5

/** The `convert` of objects that are listed as they are stored. */
export const unchanged = (bytes: Uint8Array): Uint8Array => bytes

/**
 * A list of objects joined as bytes, not decoded. `head`, if given, replaces kind and apiVersion of every item;
 * `convert` converts stored bytes to the requested version, or is `unchanged`.
 */
export function listChunks(
  { kind, apiVersion, metadata }: { readonly kind: string; readonly apiVersion: string; readonly metadata: ListMeta },
  items: readonly ListItem[],
  head: string | undefined,
  convert: (bytes: Uint8Array) => Uint8Array,
): Chunks {
  const start = Buffer.from(
    `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`,
  )
  const lead = head === undefined ? undefined : `{${head}`
  return convert === unchanged
    ? storedChunks(start, items, lead)
    : {
        release: (chunk) => buffers.give(chunk),
        [Symbol.iterator]: () =>
          joinedChunks({ start, lead: lead === undefined ? undefined : Buffer.from(lead), items, convert }),
      }
}

const segments = new ListSegments()
const end = Buffer.from(']}\n')

/** A list of objects as they are stored. */
function storedChunks(start: Buffer, items: readonly ListItem[], lead: string | undefined): Chunks {
  const divided = segments.divide(items, lead)
  let bytes = start.length + end.length
  for (const { length } of divided) bytes += length
  // The first item has no comma before it.
  if (divided.length > 0) bytes--
  return {
    bytes,
    *[Symbol.iterator]() {
      yield start
      for (const segment of divided) {
        const chunk = segments.bytesOf(items, segment, lead)
        yield segment.from === 0 ? chunk.subarray(1) : chunk
      }
      yield end
    },
  }
}

interface Joining {
  readonly start: Buffer
  readonly lead: Buffer | undefined
  readonly items: readonly ListItem[]
  readonly convert: (bytes: Uint8Array) => Uint8Array
}

/** A list item with these bytes. */
export function listItem(bytes: Uint8Array): ListItem {
  return { bytes, size: bytes.length, beginning: bytes }
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
      const source = asBuffer(convert((items[next] as ListItem).bytes))
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
    if (next === items.length) offset += end.copy(chunk, offset)
    yield chunk.subarray(0, offset)
  }
}

/**
 * A bounded pool of buffers, because allocating a buffer per chunk would keep the garbage collector busy. A buffer that
 * is not given back is garbage collected.
 */
class BufferPool {
  readonly #bytes = minChunkedBytes + 16 * 1024
  readonly #maxFree = 32
  readonly #free: Buffer[] = []

  /** A buffer of at least this many bytes. */
  take(bytes: number): Buffer {
    if (bytes < minChunkedBytes || bytes > this.#bytes) return Buffer.allocUnsafeSlow(bytes)
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes)
  }

  /** Returns a buffer of `take`, or a part of it, that is no longer read. */
  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength === this.#bytes && this.#free.length < this.#maxFree) this.#free.push(Buffer.from(buffer))
  }
}

const buffers = new BufferPool()

/** The JSON of `document` with a list as its last member `name`. The items of the list are the results of `textOf`. */
export function* textChunks<T>(
  document: object,
  name: string,
  items: readonly T[],
  textOf: (item: T) => string,
): Generator<Uint8Array> {
  let since = performance.now()
  let text = `${encodeJson(document).slice(0, -1)},${JSON.stringify(name)}:[`
  for (const [index, item] of items.entries()) {
    text += index > 0 ? `,${textOf(item)}` : textOf(item)
    if (text.length < encodedCharacters && performance.now() - since < maxChunkMs) continue
    yield Buffer.from(text)
    text = ''
    since = performance.now()
  }
  yield Buffer.from(`${text}]}\n`)
}
