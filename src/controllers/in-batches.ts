// Walks a long list without blocking the event loop.
import { setImmediate as nextEventLoopPass } from 'node:timers/promises'

/** Items per batch: they take some tenths of a millisecond. */
const batchSize = 100

/** Yields the items in order and lets other work run after each batch. Rejects with signal.reason. */
export async function* inBatches<T>(items: readonly T[], signal: AbortSignal): AsyncGenerator<T> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % batchSize === 0) {
      await nextEventLoopPass()
      signal.throwIfAborted()
    }
    yield item
  }
}
