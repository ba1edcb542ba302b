// Ranges of sizes and costs: from the least to the most that may come. Sums and products stop at the largest uint64.

export interface Range {
  readonly min: bigint
  readonly max: bigint
}

const maxUint64 = 0xffff_ffff_ffff_ffffn
const capped = (value: bigint): bigint => (value > maxUint64 ? maxUint64 : value)

export const fixed = (value: bigint | number): Range => ({ min: BigInt(value), max: BigInt(value) })
export const nothing = fixed(0)
export const one = fixed(1)
export const unknownSize: Range = { min: 0n, max: maxUint64 }

export const plus = (a: Range, b: Range): Range => ({ min: capped(a.min + b.min), max: capped(a.max + b.max) })
export const times = (a: Range, b: Range): Range => ({ min: capped(a.min * b.min), max: capped(a.max * b.max) })
export const union = (a: Range, b: Range): Range => ({
  min: a.min < b.min ? a.min : b.min,
  max: a.max > b.max ? a.max : b.max,
})

/** Both ends by a factor, rounded up, through doubles as in cel-go. */
export const scaled = ({ min, max }: Range, factor: number): Range => ({
  min: scaleUp(min, factor),
  max: scaleUp(max, factor),
})

function scaleUp(value: bigint, factor: number): bigint {
  const product = Math.ceil(Number(value) * factor)
  return product >= 2 ** 64 ? maxUint64 : BigInt(product)
}

/** One unit after the other. */
export const sum = (ranges: readonly Range[]): Range => ranges.reduce(plus, nothing)
