// A process at rest gives back what it does not use. V8 lets its young generation grow to 64 MiB while modules load or load
// comes, and shrinks it and the old one only when it collects: which a process that nobody uses never does.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** At rest: so little of one core was used since the last look. */
const restingPart = 0.03
/** Worth it: so much more is resident than after the last time. */
const worthPart = 0.08
/** Collecting stops the process for about as many milliseconds as this has MiB: beyond it V8 is left to itself. */
const maxHeapBytes = 256 * 1024 * 1024

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** Looks soon after a start, when the first requests are answered, then now and then. Keeps no process alive. Milliseconds. */
export function settleMemory({ firstMs = 3000, everyMs = 10_000 }: { firstMs?: number; everyMs?: number } = {}): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  let cpu = process.cpuUsage()
  let settledAt = 0
  const look = (): void => {
    const { user, system } = process.cpuUsage(cpu)
    cpu = process.cpuUsage()
    const isResting = settledAt === 0 || (user + system) / 1000 < everyMs * restingPart
    const used = memoryUsed()
    if (used === undefined) return
    const { rss, heapUsed } = used
    if (!isResting || heapUsed > maxHeapBytes || rss < settledAt * (1 + worthPart)) return
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    settledAt = memoryUsed()?.rss ?? rss
  }
  setTimeout(() => {
    look()
    setInterval(look, everyMs).unref()
  }, firstMs).unref()
}

/** Undefined where it cannot be asked: it is read from a file, and clients may have taken every descriptor there is. */
function memoryUsed(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined
  }
}
