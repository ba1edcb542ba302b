// The time source of queues, passed in so that tests control it.

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
