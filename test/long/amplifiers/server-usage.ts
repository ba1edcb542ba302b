// The resource usage of a process, from /proc, finer than its clock ticks: in nanoseconds of its threads.
import { existsSync, readFileSync, readdirSync } from 'node:fs'

export interface Usage {
  /** Of the main thread, which answers everybody, milliseconds. */
  readonly mainMs: number
  /** Of all threads there are, milliseconds. */
  readonly allMs: number
  /** Resident memory, MiB. */
  readonly residentMiB: number
  /** Whether a thread runs, or would if a processor were free. */
  readonly isRunning: boolean
}

/** Reads what a process has used so far. A thread that ended counts no more: compare with `usedSince`. */
export class ServerUsage {
  private readonly pid: number
  private found: Usage = { mainMs: 0, allMs: 0, residentMiB: 0, isRunning: false }
  private readonly ofThread = new Map<string, number>()

  constructor(pid: number) {
    this.pid = pid
  }

  /** What `now` found last. */
  last(): Usage {
    return this.found
  }

  /** Processor time, threads that ended included; of a process that ended what was found last. */
  now(): Usage {
    const folder = `/proc/${this.pid}`
    if (!existsSync(folder)) return this.found
    const threads = readdirSync(`${folder}/task`).map((thread) => `${folder}/task/${thread}`)
    for (const thread of threads) this.ofThread.set(thread, schedstat(thread)?.ranMs ?? this.ofThread.get(thread) ?? 0)
    const pages = Number(readFileSync(`${folder}/statm`, 'utf8').split(' ')[1])
    this.found = {
      mainMs: this.ofThread.get(`${folder}/task/${this.pid}`) ?? 0,
      allMs: [...this.ofThread.values()].reduce((sum, ms) => sum + ms, 0),
      residentMiB: (pages * 4096) / 1024 / 1024,
      isRunning: threads.some(isRunnable),
    }
    return this.found
  }
}

/** How long the main thread of a process had to wait for a processor so far, milliseconds; 0 of one that ended. */
export function delayedMs(pid: number): number {
  return schedstat(`/proc/${pid}/task/${pid}`)?.delayedMs ?? 0
}

function schedstat(thread: string): { ranMs: number; delayedMs: number } | undefined {
  try {
    const [ran, delayed] = readFileSync(`${thread}/schedstat`, 'utf8').split(' ').map(Number)
    return { ranMs: (ran ?? 0) / 1e6, delayedMs: (delayed ?? 0) / 1e6 }
  } catch {
    return undefined
  }
}

function isRunnable(thread: string): boolean {
  try {
    const stat = readFileSync(`${thread}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'R'
  } catch {
    return false
  }
}
