// Waits for a promise that several callers share, each with its own signal.

/** Settles as `promise` does, or rejects with signal.reason when aborted first; the promise itself is not cancelled. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      // Nobody awaits the promise any more: its rejection must not become an unhandled one.
      promise.catch(() => undefined)
      reject(signal.reason as Error)
      return
    }
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A call, because TypeScript takes the signal for the same after an `await`. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
