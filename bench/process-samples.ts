// Memory and processor time of processes, sampled each second.
import { cpuSeconds, residentMiB } from './process-usage.ts'

/** A part of the measurement. It begins when the object is created. */
export interface Phase {
  seconds(): number
  /** Processor time of the processes, in seconds. */
  cpu(): number
}

export class ProcessSamples implements Disposable {
  readonly #pids: readonly number[]
  readonly #timer: NodeJS.Timeout
  #mostMiB = 0

  constructor(pids: readonly number[]) {
    this.#pids = pids
    this.#timer = setInterval(() => {
      this.#mostMiB = Math.max(this.#mostMiB, this.nowMiB)
    }, 1000)
  }

  /** Resident memory, the most that was seen. */
  get mostMiB(): number {
    return this.#mostMiB
  }

  get nowMiB(): number {
    return residentMiB(this.#pids)
  }

  phase(): Phase {
    const [began, cpu] = [performance.now(), cpuSeconds(this.#pids)]
    return {
      seconds: () => (performance.now() - began) / 1000,
      cpu: () => cpuSeconds(this.#pids) - cpu,
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
