// Waits for a first object, so that what nobody uses costs nothing.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Informer } from '#client/index.ts'

/** Resolves when there is an object. Rejects with signal.reason. */
export async function untilOne<T extends KubeObject>(objects: Informer<T>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  const unsubscribe = objects.onChange(() => resolve(undefined))
  try {
    signal.throwIfAborted()
    await promise
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', abort)
  }
}
