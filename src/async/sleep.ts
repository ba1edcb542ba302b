// A sleep that can be cancelled.

/**
 * Resolves after `ms` milliseconds; rejects with signal.reason when aborted. With `unref`, the timer does not keep the
 * process alive.
 */
export function sleep(ms: number, signal: AbortSignal, { unref = false }: { unref?: boolean } = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error)
      return
    }
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (unref) timer.unref()
    signal.addEventListener('abort', abort, { once: true })
  })
}
