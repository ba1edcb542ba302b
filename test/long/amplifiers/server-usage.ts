// What a process uses, from /proc, finer than its clock ticks: in nanoseconds of its threads.
import { existsSync, readFileSync, readdirSync } from 'node:fs'

export interface Usage {
  /** Of the main thread, which answers everybody, milliseconds. */
  readonly mainMs: number
  /** Of all threads there are, milliseconds. */
  readonly allMs: number
  /** Resident memory, MiB. */
  readonly residentMiB: number
}

/** Reads what a process has used so far. A thread that ended counts no more: compare with `usedSince`. */
export class ServerUsage {
  private readonly pid: number
  private found: Usage = { mainMs: 0, allMs: 0, residentMiB: 0 }
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
    for (const thread of readdirSync(`${folder}/task`)) {
      const ns = this.nanoseconds(thread)
      if (ns !== undefined) this.ofThread.set(thread, ns)
    }
    const all = [...this.ofThread.values()].reduce((sum, ns) => sum + ns, 0)
    const pages = Number(readFileSync(`${folder}/statm`, 'utf8').split(' ')[1])
    this.found = {
      mainMs: (this.ofThread.get(String(this.pid)) ?? 0) / 1e6,
      allMs: all / 1e6,
      residentMiB: (pages * 4096) / 1024 / 1024,
    }
    return this.found
  }

  private nanoseconds(thread: string): number | undefined {
    try {
      return Number(readFileSync(`/proc/${this.pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      return undefined
    }
  }
}
