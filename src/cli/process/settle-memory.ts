// Returns unused memory of an idle process to the system. V8 lets its young generation grow to 64 MiB while modules
// load or requests come, and shrinks both generations only when it collects, which an idle process never does.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * The process is idle if its event loop was busy for less than this fraction of the time since the last check, or if
 * all its threads used less than this fraction of one core: on a loaded machine the loop also counts the time that it
 * waits for a core.
 */
const idleFraction = 0.03
/** This fraction applies until the first collection, while the controllers still read the existing objects. */
const firstIdleFraction = 0.1
/** A collection is worth it if resident memory grew by more than this fraction since the last one. */
const growthFraction = 0.08
/** A full collection stops the process for about one millisecond per MiB: above this size V8 decides by itself. */
const maxHeapBytes = 256 * 1024 * 1024

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/**
 * Checks every `firstMs` until the start is over and the process idle, then every `everyMs`; milliseconds. Never
 * collects while there are requests: they would wait for it. Does not keep the process alive.
 */
export function settleMemory({ firstMs = 1000, everyMs = 10_000 }: { firstMs?: number; everyMs?: number } = {}): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  let usage = performance.eventLoopUtilization()
  let cpu = process.cpuUsage()
  let checkedMs = performance.now()
  let collectedRss = 0
  const periodMs = (): number => (collectedRss === 0 ? firstMs : everyMs)
  const check = (): void => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, usage)
    usage = now
    const { user, system } = process.cpuUsage(cpu)
    cpu = process.cpuUsage()
    const ofCore = (user + system) / 1000 / (performance.now() - checkedMs)
    checkedMs = performance.now()
    const isIdle = Math.min(utilization, ofCore) < (collectedRss === 0 ? firstIdleFraction : idleFraction)
    const used = memoryUsed()
    if (used === undefined) return
    const { rss, heapUsed } = used
    if (!isIdle || heapUsed > maxHeapBytes || rss < collectedRss * (1 + growthFraction)) return
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    collectedRss = memoryUsed()?.rss ?? rss
  }
  const repeat = (): void => {
    const timer = setTimeout(() => {
      check()
      repeat()
    }, periodMs())
    timer.unref()
  }
  repeat()
}

/**
 * The memory of the process; undefined if it cannot be read: it comes from a file, and clients may hold every
 * descriptor.
 */
function memoryUsed(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined
  }
}
