// A signal with a shorter life, derived from one with a longer life.

export interface ChildSignal extends Disposable {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
}

/**
 * A signal that aborts with its parent, or alone. Disposing unlinks it from the parent without aborting it.
 * Not AbortSignal.any: over a process-long parent that keeps about 1.2 kB per call while a listener stays.
 */
export function childSignal(parent: AbortSignal): ChildSignal {
  const controller = new AbortController()
  const forward = (): void => controller.abort(parent.reason)
  if (parent.aborted) forward()
  else parent.addEventListener('abort', forward, { once: true })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => parent.removeEventListener('abort', forward),
  }
}
