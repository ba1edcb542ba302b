// Returns unused memory of an idle process to the system. V8 lets its young generation grow to 64 MiB while modules
// load or requests come, and shrinks both generations only when it collects, which an idle process never does.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The process is idle if it used less than this fraction of one core since the last check. */
const idleFraction = 0.03
/** A collection is worth it if resident memory grew by more than this fraction since the last one. */
const growthFraction = 0.08
/** A full collection stops the process for about one millisecond per MiB: above this size V8 decides by itself. */
const maxHeapBytes = 256 * 1024 * 1024

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/**
 * Checks once after the first requests of a start, then periodically; times in milliseconds. Does not keep the process
 * alive.
 */
export function settleMemory({ firstMs = 3000, everyMs = 10_000 }: { firstMs?: number; everyMs?: number } = {}): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  let cpu = process.cpuUsage()
  let collectedRss = 0
  const check = (): void => {
    const { user, system } = process.cpuUsage(cpu)
    cpu = process.cpuUsage()
    const isIdle = collectedRss === 0 || (user + system) / 1000 < everyMs * idleFraction
    const used = memoryUsed()
    if (used === undefined) return
    const { rss, heapUsed } = used
    if (!isIdle || heapUsed > maxHeapBytes || rss < collectedRss * (1 + growthFraction)) return
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    collectedRss = memoryUsed()?.rss ?? rss
  }
  setTimeout(() => {
    check()
    setInterval(check, everyMs).unref()
  }, firstMs).unref()
}

/** Undefined if it cannot be read: it comes from a file, and clients may hold every descriptor. */
function memoryUsed(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined
  }
}
