// Segments: runs of objects that are joined as they are sent in a list or in the initial state of a watch. A later
// request gets the unchanged segments again without a read of their objects.
import { Buffer } from 'node:buffer'
import { asBuffer, metadataStart } from '#virtualapi/kinds/resources/object-bytes.ts'

/** An object of a list. Its bytes are read only when they are sent. */
export interface ListItem {
  readonly bytes: Uint8Array
  /** The length of the bytes. */
  readonly size: number
  /** Bytes that begin as `bytes` does, up to metadata at least. */
  readonly beginning: Uint8Array
}

/** Items of a list from one index to another. */
export interface Segment {
  readonly from: number
  readonly to: number
  /** The length of the items' JSON, including the text before and after each item. */
  readonly length: number
  /** The items' JSON if it was in memory when the list was divided; otherwise undefined. */
  readonly known: Buffer | undefined
}

interface KeptSegment {
  readonly items: readonly ListItem[]
  readonly lead: string | undefined
  readonly bytes: Buffer
}

interface ListSegmentsOptions {
  /** The text before and after each item. Default: a comma before each item. */
  readonly around?: readonly [before: string, after: string]
  /** The bytes of used segments after which the older generation is dropped. Default 16 MiB. */
  readonly maxBytes?: number
  /** A segment that was not used for this long, or up to twice as long, is dropped. Default 15 s. */
  readonly idleMs?: number
}

/**
 * A segment ends when it has the first number of bytes, or when another known segment begins and it has at least the
 * second number.
 */
const [maxSegmentBytes, minSegmentBytes] = [64 * 1024, 16 * 1024]

/**
 * A cache of segments in two generations. A segment that is used moves into the newer generation; from time to time the
 * older generation is dropped.
 */
export class ListSegments {
  readonly #around: readonly [before: Buffer, after: Buffer]
  readonly #maxBytes: number
  readonly #idleMs: number
  /** The segments by their first item. */
  #newer = new Map<ListItem, KeptSegment>()
  #older = new Map<ListItem, KeptSegment>()
  #newerBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ around = [',', ''], maxBytes = 16 * 1024 * 1024, idleMs = 15_000 }: ListSegmentsOptions = {}) {
    this.#around = [Buffer.from(around[0]), Buffer.from(around[1])]
    this.#maxBytes = maxBytes
    this.#idleMs = idleMs
  }

  /**
   * Divides a list into segments. `lead` replaces the bytes before metadata in every item; undefined: the items stay as
   * they are.
   */
  divide(items: readonly ListItem[], lead: string | undefined): readonly Segment[] {
    const segments: Segment[] = []
    for (let from = 0; from < items.length; from = segments.at(-1)?.to ?? items.length)
      segments.push(this.segmentAt(items, from, lead))
    return segments
  }

  /** The segment that begins at this index, for callers that do not need the number of segments. */
  segmentAt(items: readonly ListItem[], from: number, lead: string | undefined): Segment {
    return this.#knownAt(items, from, lead) ?? this.#measured(items, from, lead)
  }

  /** The JSON of a segment of this list, with the text before and after each item. */
  bytesOf(items: readonly ListItem[], { from, to, length, known }: Segment, lead: string | undefined): Buffer {
    if (known !== undefined) return known
    const found = this.#knownAt(items, from, lead)
    if (found?.known !== undefined && found.to === to) return found.known
    const segment = { items: items.slice(from, to), lead, bytes: Buffer.allocUnsafeSlow(length) }
    joinInto(segment.bytes, segment.items, lead, this.#around)
    // Small whole lists are not kept, because they cost little and there may be thousands of them.
    if (from > 0 || length >= minSegmentBytes) this.#keep(segment)
    return segment.bytes
  }

  #knownAt(items: readonly ListItem[], from: number, lead: string | undefined): Segment | undefined {
    const first = items[from] as ListItem
    const newer = this.#newer.get(first)
    const kept = newer ?? this.#older.get(first)
    if (kept === undefined || kept.lead !== lead || !isPart(kept.items, items, from)) return undefined
    if (newer === undefined) this.#keep(kept)
    return { from, to: from + kept.items.length, length: kept.bytes.length, known: kept.bytes }
  }

  #measured(items: readonly ListItem[], from: number, lead: string | undefined): Segment {
    let [to, length, start] = [from, 0, 0]
    const aroundBytes = this.#around[0].length + this.#around[1].length
    // A known segment that has grown may take some more bytes before it is cut. Otherwise all segments after it would
    // have to be made again.
    const maxBytes = this.#isFirst(items[from] as ListItem) ? maxSegmentBytes * 1.25 : maxSegmentBytes
    for (; to < items.length && length < maxBytes; to++) {
      const { size, beginning } = items[to] as ListItem
      if (length >= minSegmentBytes && this.#isFirst(items[to] as ListItem)) break
      length += size + aroundBytes
      if (lead === undefined) continue
      start = metadataStart(asBuffer(beginning), start)
      length += lead.length - start
    }
    return { from, to, length, known: undefined }
  }

  #isFirst(item: ListItem): boolean {
    return this.#newer.has(item) || this.#older.has(item)
  }

  #keep(segment: KeptSegment): void {
    const first = segment.items[0] as ListItem
    this.#newerBytes += segment.bytes.length - (this.#newer.get(first)?.bytes.length ?? 0)
    this.#newer.set(first, segment)
    if (this.#newerBytes > this.#maxBytes) this.#age()
    this.#timer ??= this.#later()
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#age()
      this.#timer = this.#older.size === 0 ? undefined : this.#later()
    }, this.#idleMs).unref()
  }

  #age(): void {
    this.#older = this.#newer
    this.#newer = new Map()
    this.#newerBytes = 0
  }
}

function isPart(part: readonly ListItem[], items: readonly ListItem[], from: number): boolean {
  if (from + part.length > items.length) return false
  for (let i = 0; i < part.length; i++) if (part[i] !== items[from + i]) return false
  return true
}

function joinInto(
  result: Buffer,
  items: readonly ListItem[],
  lead: string | undefined,
  [before, after]: readonly [Buffer, Buffer],
): void {
  let [at, start] = [0, 0]
  for (const { bytes } of items) {
    const source = asBuffer(bytes)
    at += before.copy(result, at)
    if (lead !== undefined) {
      start = metadataStart(source, start)
      at += result.write(lead, at, 'latin1')
    }
    at += source.copy(result, at, start)
    at += after.copy(result, at)
  }
}
