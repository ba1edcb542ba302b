// Packing of managedFields in objects that are in memory and are not being read. managedFields are as large as the rest
// of the object, and nearly the same in objects that one program writes: only the times differ. So objects share the
// texts between the times (shared-texts.ts): the packed bytes have a number in place of each text, between two bytes
// that no JSON contains. In the store, on the wire and for readers, objects are not packed.
import { Buffer } from 'node:buffer'
import type { Packing } from '#store/watch-cache/index.ts'
import { asBuffer } from './object-bytes.ts'
import { SharedTexts } from './shared-texts.ts'

/** The byte before and after the number of a shared text. */
const mark = 0x01
/** The bounds of a shared text in bytes. A shorter text is not worth its number; few objects share a longer one. */
const [minTextBytes, maxTextBytes] = [24, 8 * 1024]

const texts = new SharedTexts()
const start = Buffer.from('"managedFields":[{')
/**
 * The end of managedFields, the last member of metadata. If these bytes are inside of managedFields, which is rare,
 * only the part before them is shared.
 */
const end = Buffer.from('}]}')
const timeStart = '"time":"'
/** `2026-11-22T10:00:00Z` */
const timeCharacters = 20

/** `pack` replaces texts in managedFields by numbers of shared texts; `unpack` restores them. */
export const packedManagers: Packing = { pack, unpack }

/** A shared text in place of the bytes from `from` to `to`. */
interface Shared {
  readonly from: number
  readonly to: number
  readonly number: string
}

function pack(bytes: Uint8Array): Uint8Array {
  const source = asBuffer(bytes)
  const from = source.indexOf(start)
  const to = from < 0 ? -1 : source.indexOf(end, from)
  if (to < 0) return bytes
  const shared = sharedIn(source.toString('latin1', from, to), from)
  return shared.length === 0 ? bytes : withShared(source, shared)
}

/** The texts before, between and after the times of this text, which begins at `offset`, if they have numbers. */
function sharedIn(text: string, offset: number): readonly Shared[] {
  const shared: Shared[] = []
  const share = (from: number, to: number): void => {
    if (to - from < minTextBytes || to - from > maxTextBytes) return
    const number = texts.numberOf(text.slice(from, to))
    if (number !== undefined) shared.push({ from: from + offset, to: to + offset, number: number.toString(36) })
  }
  let from = 0
  for (let at = text.indexOf(timeStart); at >= 0; at = text.indexOf(timeStart, from)) {
    // The text includes the name of the member `time`.
    share(from, at + timeStart.length)
    from = at + timeStart.length + timeCharacters
  }
  share(from, text.length)
  return shared
}

function withShared(source: Buffer, shared: readonly Shared[]): Buffer {
  let { length } = source
  for (const { from, to, number } of shared) length += number.length + 2 - (to - from)
  const result = Buffer.allocUnsafeSlow(length)
  let [copied, at] = [0, 0]
  for (const { from, to, number } of shared) {
    at += source.copy(result, at, copied, from)
    result[at++] = mark
    for (let i = 0; i < number.length; i++) result[at++] = number.charCodeAt(i)
    result[at++] = mark
    copied = to
  }
  source.copy(result, at, copied)
  return result
}

function unpack(bytes: Uint8Array, size: number): Uint8Array {
  const source = asBuffer(bytes)
  const result = Buffer.allocUnsafeSlow(size)
  let [copied, at] = [0, 0]
  for (let first = source.indexOf(mark); first >= 0; first = source.indexOf(mark, copied)) {
    const last = source.indexOf(mark, first + 1)
    at += source.copy(result, at, copied, first)
    at += texts.bytesOf(numberAt(source, first + 1, last)).copy(result, at)
    copied = last + 1
  }
  source.copy(result, at, copied)
  return result
}

function numberAt(bytes: Buffer, from: number, to: number): number {
  let number = 0
  for (let i = from; i < to; i++) {
    const digit = bytes[i] ?? 0
    number = number * 36 + (digit < 0x3a ? digit - 0x30 : digit - 0x57)
  }
  return number
}
