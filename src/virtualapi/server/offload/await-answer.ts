// The worker's wait for the main thread's answer to a read.

/**
 * Blocks until the counter at index 0 differs from `before`. A wake-up alone proves nothing: the main thread increments
 * the counter and then notifies, so a late notification of one answer can arrive while the worker waits for the next.
 */
export function awaitAnswer(answered: Int32Array<SharedArrayBuffer>, before: number): void {
  while (Atomics.load(answered, 0) === before) Atomics.wait(answered, 0, before)
}
