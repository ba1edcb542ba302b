// The worker's wait for the main thread's answer to a read.

/**
 * Blocks until the counter at 0 has another value than `before`. A wake-up alone says nothing: the main thread counts,
 * then notifies, and where it is interrupted between the two, its notification of one answer comes while the next one
 * is waited for.
 */
export function awaitAnswer(answered: Int32Array<SharedArrayBuffer>, before: number): void {
  while (Atomics.load(answered, 0) === before) Atomics.wait(answered, 0, before)
}
