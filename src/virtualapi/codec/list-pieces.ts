// A list as bytes, a piece at a time: thousands of objects are neither copied into one buffer nor encoded in one go.
import { Buffer } from 'node:buffer'
import { encodeJson } from '../../apimachinery/meta/index.ts'
import { asBuffer, metadataStart } from '../registry/object-bytes.ts'

export interface ListMeta {
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

/**
 * Least size of a piece of copied bytes, save for the last: about 0.1 ms until it is encrypted and written. Memory for it is
 * used again; from 128 KiB on the allocator maps every buffer anew, which made a list of 500 cost a third more.
 */
export const pieceBytes = 64 * 1024
/** Of what is decoded and encoded again, which takes longer. */
const encodedCharacters = 16 * 1024

/** Objects joined, not decoded. `head` replaces the kind and apiVersion of every item, if given. */
export function* listPieces(
  kind: string,
  apiVersion: string,
  metadata: ListMeta,
  items: readonly Uint8Array[],
  head: string | undefined,
  convert: (bytes: Uint8Array) => Uint8Array,
): Generator<Uint8Array> {
  const lead = head === undefined ? Buffer.alloc(0) : Buffer.from(`{${head}`)
  let start = Buffer.from(
    `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`,
  )
  let from = 0
  for (let next = 0; next < items.length || start.length > 0; start = Buffer.alloc(0)) {
    const first = next
    const sources: Buffer[] = []
    let most = start.length + 3
    for (; next < items.length && most < pieceBytes; next++) {
      const source = asBuffer(convert(items[next] as Uint8Array))
      sources.push(source)
      most += lead.length + source.length + 1
    }
    const piece = Buffer.allocUnsafeSlow(most)
    let at = start.copy(piece, 0)
    for (const [index, source] of sources.entries()) {
      if (first + index > 0) piece[at++] = 0x2c
      if (head !== undefined) {
        from = metadataStart(source, from)
        at += lead.copy(piece, at)
      }
      at += source.copy(piece, at, from)
    }
    if (next === items.length) at += piece.write(']}\n', at, 'latin1')
    yield piece.subarray(0, at)
  }
}

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
