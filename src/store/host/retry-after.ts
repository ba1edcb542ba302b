// A host under load says "later".
import { sleep } from '../../async/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'

/**
 * Asks again where the host answered 429, after as long as it wants: it says so before it begins anything. Rejects with that
 * answer where it wants more than is left of `withinMs`: whoever asks would have been told "too late" before.
 */
export async function retryAfter<T>(
  ask: () => Promise<T>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
): Promise<T> {
  const began = performance.now()
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isStatusError(error, 'TooManyRequests')) throw error
      const waitMs = 1000 * Math.max(1, error.status.details?.retryAfterSeconds ?? 1)
      if (performance.now() - began + waitMs > withinMs) throw error
      await sleep(waitMs, signal)
    }
  }
}
