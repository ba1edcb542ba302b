// Statistics of measured values.

/** The value below which the fraction `part` (0 to 1) of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN
}

/** The median. */
export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Rounded to the digits that matter to a reader. */
export function rounded(value: number): number {
  if (!Number.isFinite(value) || value === 0) return value
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  return Number(value.toFixed(Math.min(digits, 3)))
}
