// Time as the loops use it: passed in, so that tests own it.

export interface Timers {
  /** Monotonic milliseconds. */
  monotonic(): number
  /** Calls `run` after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, run: () => void): () => void
}

export const systemTimers: Timers = {
  monotonic: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
