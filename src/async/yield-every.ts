// Long work in slices: a loop outside requests must not hold up the requests of everybody.
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * For loops over many items: call the result once per item and await what it returns. It is undefined until `ms`
 * milliseconds have passed since the last pause, then a promise that lets other work run first; it rejects with
 * signal.reason.
 */
export function yieldEvery(ms: number, signal?: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now()
  const pause = async (): Promise<void> => {
    await nextTurn()
    signal?.throwIfAborted()
    since = performance.now()
  }
  return () => (performance.now() - since < ms ? undefined : pause())
}
