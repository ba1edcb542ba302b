// Retries reads while the host answers 429.
import { sleep } from '#async/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'

/**
 * Retries after the time that the host's 429 answer names; such a request has had no effect. Rejects with that answer if the
 * time exceeds the rest of `withinMs`.
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
