// The names that a folder of the source has, as 64 bits of each: a folder with a million entries takes some 16 MiB.
import { randomInt } from 'node:crypto'

/** The chance that a name that was not added seems to be there is one in 2^64 for each name that was. */
export class NameSet {
  readonly #seeds = [randomInt(2 ** 32), randomInt(2 ** 32)] as const
  #slots = new Uint32Array(32)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Memory of the names. */
  get bytes(): number {
    return this.#slots.byteLength
  }

  add(name: Buffer): void {
    if (this.#size * 4 >= this.#slots.length) this.#grow()
    const [high, low] = this.#hash(name)
    if (put(this.#slots, high, low)) this.#size++
  }

  has(name: Buffer): boolean {
    const [high, low] = this.#hash(name)
    const mask = this.#slots.length / 2 - 1
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const [a, b] = [this.#slots[slot * 2], this.#slots[slot * 2 + 1]]
      if (a === 0 && b === 0) return false
      if (a === high && b === low) return true
    }
  }

  #grow(): void {
    const larger = new Uint32Array(this.#slots.length * 2)
    for (let at = 0; at < this.#slots.length; at += 2) {
      const [high = 0, low = 0] = [this.#slots[at], this.#slots[at + 1]]
      if (high !== 0 || low !== 0) put(larger, high, low)
    }
    this.#slots = larger
  }

  /** Two halves, mixed as in MurmurHash3, with seeds that nobody outside knows. */
  #hash(name: Buffer): readonly [number, number] {
    let [a, b] = this.#seeds
    for (const byte of name) {
      a = Math.imul(a ^ byte, 0x85ebca6b)
      b = Math.imul(b ^ byte, 0xc2b2ae35)
      a ^= b >>> 15
      b ^= a >>> 13
    }
    a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35)
    b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35)
    const [high, low] = [a >>> 0, b >>> 0]
    // 0, 0 means an empty slot.
    return high === 0 && low === 0 ? [1, 0] : [high, low]
  }
}

function put(slots: Uint32Array, high: number, low: number): boolean {
  const mask = slots.length / 2 - 1
  let slot = low & mask
  for (; ; slot = (slot + 1) & mask) {
    const [a, b] = [slots[slot * 2], slots[slot * 2 + 1]]
    if (a === high && b === low) return false
    if (a === 0 && b === 0) break
  }
  slots[slot * 2] = high
  slots[slot * 2 + 1] = low
  return true
}
