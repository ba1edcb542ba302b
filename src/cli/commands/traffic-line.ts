// The line that shows the traffic of the demo: kept up to date on a terminal; elsewhere a new line after each change.
import { sleep } from '#async/index.ts'
import type { Traffic, TrafficReport } from '#simulation/index.ts'

const [terminalMs, plainMs] = [500, 1000]
/** Without a terminal, a line is written at least this often. */
const quietMs = 30_000

export class TrafficLine {
  readonly #traffic: Traffic
  readonly #out: NodeJS.WriteStream
  #shown = ''
  #shownAt = 0

  constructor(traffic: Traffic, out: NodeJS.WriteStream = process.stdout) {
    this.#traffic = traffic
    this.#out = out
  }

  /** Resolves when the signal aborts. */
  async show(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const { report } = this.#traffic
        if (this.#out.isTTY) this.#out.write(`\r\u001b[K${trafficText(report)}`)
        else this.#writeChange(report)
        await sleep(this.#out.isTTY ? terminalMs : plainMs, signal)
      }
    } catch (error) {
      if (!signal.aborted) throw error
      if (this.#out.isTTY) this.#out.write('\n')
    }
  }

  #writeChange(report: TrafficReport): void {
    const essence = JSON.stringify([report.failed, report.failing > 0, [...report.members.keys()]])
    if (essence === this.#shown && Date.now() - this.#shownAt < quietMs) return
    this.#shown = essence
    this.#shownAt = Date.now()
    this.#out.write(`${trafficText(report)}\n`)
  }
}

/** One line about the requests so far. */
export function trafficText({ sent, failed, failing, members, lastFailure }: TrafficReport): string {
  const shares = [...members].map(([member, percent]) => `${member} ${percent} %`).join(', ')
  const why = failing > 0 ? ` | failing: ${lastFailure.slice(0, 80)}` : ''
  return `traffic: ${sent} requests, ${failed} failed | answered by ${shares === '' ? 'nobody' : shares}${why}`
}
