// Waiting for something that many wait for, each with a signal of their own.

/** Settles as `promise` does, or rejects with signal.reason when aborted first; the promise itself goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      // Nobody is left to hear of it.
      promise.catch(() => undefined)
      reject(signal.reason as Error)
      return
    }
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
