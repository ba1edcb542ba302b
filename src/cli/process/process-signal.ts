// The life of the process as a signal, aborted by SIGTERM and SIGINT. A second signal ends the process at once.

/** Aborts when the process is asked to stop. Call it once. */
export function processSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(1)
    controller.abort(new Error(`stopped by ${name}`))
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  return controller.signal
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Runs a server until it is stopped. A stop before it is ready is not an error. */
export async function untilStopped(signal: AbortSignal, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  }
}
