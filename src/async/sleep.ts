// Waiting, cancellably.

/** Resolves after `ms` milliseconds; rejects with signal.reason when aborted. Keeps no process alive by itself if `unref`. */
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
