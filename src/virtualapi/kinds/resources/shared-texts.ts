// Texts that many objects contain, each in memory once. A text gets a number when it is seen for the second time.
// Numbers are never reused, so the table is bounded; when it is full, it stays as it is, and new texts get no number.
import { Buffer } from 'node:buffer'

interface SharedTextsOptions {
  /** Default 50,000. */
  readonly maxTexts?: number
  /** Bytes of all texts together. Default 32 MiB. */
  readonly maxBytes?: number
}

/** Slots for hashes of texts that were seen once. */
const slots = 1 << 16

export class SharedTexts {
  readonly #maxTexts: number
  readonly #maxBytes: number
  readonly #numbers = new Map<string, number>()
  readonly #texts: Buffer[] = []
  readonly #seenOnce = new Uint32Array(slots)
  #bytes = 0

  constructor({ maxTexts = 50_000, maxBytes = 32 * 1024 * 1024 }: SharedTextsOptions = {}) {
    this.#maxTexts = maxTexts
    this.#maxBytes = maxBytes
  }

  /** The number of a text (latin1 of its bytes); undefined if it has none, so that the caller must write it out. */
  numberOf(text: string): number | undefined {
    const known = this.#numbers.get(text)
    if (known !== undefined || !this.#wasSeen(text)) return known
    if (this.#texts.length >= this.#maxTexts || this.#bytes + text.length > this.#maxBytes) return undefined
    const number = this.#texts.push(Buffer.from(text, 'latin1')) - 1
    this.#numbers.set(text, number)
    this.#bytes += text.length
    return number
  }

  /** The bytes of a number. Throws for a number that was never given. */
  bytesOf(number: number): Buffer {
    const text = this.#texts[number]
    if (text === undefined) throw new Error(`there is no shared text ${number}`)
    return text
  }

  /** True if the text was probably seen before. Two texts with the same hash count as one, which does no harm. */
  #wasSeen(text: string): boolean {
    let hash = 0x811c9dc5
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
    const slot = (hash ^ (hash >>> 16)) & (slots - 1)
    const seen = this.#seenOnce[slot] === hash >>> 0
    this.#seenOnce[slot] = hash
    return seen
  }
}
