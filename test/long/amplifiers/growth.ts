// How fast a cost grows with the size of what causes it.

/** What one request cost at one size. */
export interface Point {
  readonly n: number
  /** Processor time of the server, all its threads, milliseconds. */
  readonly cpuMs: number
}

/** Costs below this are too close to the noise of a busy machine to be compared, milliseconds. */
export const noiseMs = 8

/**
 * The exponent e of the best fit cost ~ n^e over the last doublings (at most four points); 1 is linear, 2 quadratic. The cost
 * at the smallest size counts as fixed. Undefined where fewer than two points are above the noise.
 */
export function growthExponent(points: readonly Point[]): number | undefined {
  const sorted = points.toSorted((a, b) => a.n - b.n)
  const fixed = Math.min(sorted[0]?.cpuMs ?? 0, noiseMs)
  const above = sorted.slice(1).filter(({ cpuMs }) => cpuMs - fixed >= noiseMs)
  const last = above.slice(-4).map(({ n, cpuMs }) => ({ x: Math.log(n), y: Math.log(cpuMs - fixed) }))
  if (last.length < 2) return undefined
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanX = mean(last.map(({ x }) => x))
  const meanY = mean(last.map(({ y }) => y))
  const covariance = mean(last.map(({ x, y }) => (x - meanX) * (y - meanY)))
  return covariance / mean(last.map(({ x }) => (x - meanX) ** 2))
}
