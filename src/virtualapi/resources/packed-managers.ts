// managedFields of objects in memory. They are as large as the object itself, and nearly the same in objects that one
// program writes: only the times differ. So the texts between the times are shared (shared-texts.ts): in their place the
// bytes of the object have a number between two bytes that no JSON contains. At rest and on the wire they are as ever.
import { Buffer } from 'node:buffer'
import { SharedTexts } from './shared-texts.ts'

/** Stands before and after a number. */
const mark = 0x01
/** A text that is shorter would not be worth its number. A longer one few objects share. */
const [minTextBytes, maxTextBytes] = [24, 8 * 1024]

const texts = new SharedTexts()
const start = Buffer.from('"managedFields":[{')
const time = /"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"/g

/** The bytes with shared texts for managedFields; the same bytes where there is nothing to share. */
export function packManagers(bytes: Buffer, metadataEnd: (bytes: Buffer) => number): Buffer {
  const from = bytes.indexOf(start)
  // What is packed in part has braces that do not match.
  if (from < 0 || bytes.includes(mark)) return bytes
  // They are the last member of metadata; what is called so elsewhere is somebody's own.
  const end = metadataEnd(bytes) - 1
  if (from > end || bytes[end - 1] !== 0x5d) return bytes
  const packed = packText(bytes.toString('latin1', from, end))
  if (packed === undefined) return bytes
  const result = Buffer.allocUnsafeSlow(from + packed.length + bytes.length - end)
  bytes.copy(result, 0, 0, from)
  result.write(packed, from, 'latin1')
  bytes.copy(result, from + packed.length, end)
  return result
}

/** Undefined where nothing of it is shared. */
function packText(text: string): string | undefined {
  let [result, from, isShared] = ['', 0, false]
  const share = (part: string): void => {
    const number = part.length < minTextBytes || part.length > maxTextBytes ? undefined : texts.numberOf(part)
    isShared ||= number !== undefined
    result += number === undefined ? part : `\x01${number.toString(36)}\x01`
  }
  for (const { 0: found, index } of text.matchAll(time)) {
    // The name of the member goes with what is before it.
    share(text.slice(from, index + 8))
    result += found.slice(8, -1)
    from = index + found.length - 1
  }
  share(text.slice(from))
  return isShared ? result : undefined
}

/** The bytes as they are at rest and on the wire; the same bytes where nothing is packed. */
export function unpackManagers(bytes: Uint8Array): Uint8Array {
  const first = bytes.indexOf(mark)
  if (first < 0) return bytes
  const parts: Uint8Array[] = []
  let from = 0
  for (let at = first; at >= 0; at = bytes.indexOf(mark, from)) {
    const end = bytes.indexOf(mark, at + 1)
    parts.push(bytes.subarray(from, at), texts.bytesOf(numberAt(bytes, at + 1, end)))
    from = end + 1
  }
  parts.push(bytes.subarray(from))
  return Buffer.concat(parts)
}

/** How many bytes `unpackManagers` gives. */
export function unpackedLength(bytes: Uint8Array): number {
  let { length } = bytes
  for (let at = bytes.indexOf(mark); at >= 0;) {
    const end = bytes.indexOf(mark, at + 1)
    length += texts.bytesOf(numberAt(bytes, at + 1, end)).length - (end + 1 - at)
    at = bytes.indexOf(mark, end + 1)
  }
  return length
}

function numberAt(bytes: Uint8Array, from: number, end: number): number {
  let number = 0
  for (let i = from; i < end; i++) {
    const digit = bytes[i] ?? 0
    number = number * 36 + (digit < 0x3a ? digit - 0x30 : digit - 0x57)
  }
  return number
}
