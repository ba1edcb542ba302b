// The growth of a cost with the size of its cause.

/** What one request cost at one size. */
export interface Point {
  readonly n: number
  /** Processor time of the server, all its threads, milliseconds. */
  readonly cpuMs: number
}

/** Costs below this are too close to the noise of a busy machine to be compared, milliseconds. */
const noiseMs = 8
/** One doubling alone counts from here on, milliseconds: below, it may be the step to another thread. */
const stepMs = 300

/**
 * The exponent e of cost ~ n^e; 1 is linear, 2 quadratic: the best fit over the last doublings (at most four points),
 * or the least of the last two doublings where that is lower: one step of a cost (another thread, a garbage collection)
 * is no growth. The cost at the smallest size counts as fixed. Undefined where fewer than three points are above the
 * noise, or two if the cost is large.
 */
export function growthExponent(points: readonly Point[]): number | undefined {
  const sorted = points.toSorted((a, b) => a.n - b.n)
  const fixed = Math.min(sorted[0]?.cpuMs ?? 0, noiseMs)
  const above = sorted.slice(1).filter(({ cpuMs }) => cpuMs - fixed >= noiseMs)
  const last = above.slice(-4).map(({ n, cpuMs }) => ({ x: Math.log(n), y: Math.log(cpuMs - fixed) }))
  if (last.length < ((above.at(-1)?.cpuMs ?? 0) < stepMs ? 3 : 2)) return undefined
  const doublings = last.slice(1).map((point, i) => slope([last[i] ?? point, point]))
  return Math.min(slope(last), ...doublings.slice(-2))
}

interface Logarithms {
  readonly x: number
  readonly y: number
}

/** Of the line with the least squares. */
function slope(points: readonly Logarithms[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanX = mean(points.map(({ x }) => x))
  const meanY = mean(points.map(({ y }) => y))
  const covariance = mean(points.map(({ x, y }) => (x - meanX) * (y - meanY)))
  return covariance / mean(points.map(({ x }) => (x - meanX) ** 2))
}
