// The clock is passed in, so that tests control time.

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number
  /** Monotonic milliseconds: for durations and deadlines. */
  monotonic(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** A time as Kubernetes writes it: RFC 3339, UTC, whole seconds. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000)
  if (second !== last.second) last = { second, text: `${new Date(ms).toISOString().slice(0, 19)}Z` }
  return last.text
}

/** Most times are those of now. */
let last = { second: NaN, text: '' }
