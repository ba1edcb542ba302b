// Many objects that must all be looked at for one reason, without everybody else waiting for that.
import { setImmediate as nextPass } from 'node:timers/promises'

/** So many take some tenths of a millisecond. */
const partSize = 100

/** The same, in order, giving way after each part. Rejects with signal.reason. */
export async function* inParts<T>(items: readonly T[], signal: AbortSignal): AsyncGenerator<T> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % partSize === 0) {
      await nextPass()
      signal.throwIfAborted()
    }
    yield item
  }
}
