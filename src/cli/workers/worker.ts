// One of the workers of a server, as its supervisor started it.
import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import type { Siblings } from '#cli/roles/replica.ts'
import { scrapeOfAll, type Metrics, type MetricsSnapshot } from '#telemetry/index.ts'
import { aliveMs, socketsPrefix, variables, type ToSupervisor, type ToWorker } from './messages.ts'

/** A scrape shows the workers that answer in this time, milliseconds. */
const answerMs = 2000

export class Worker {
  /** The number of this worker, from 1. */
  readonly index: number
  /** Aborts when the worker is to stop. */
  readonly signal: AbortSignal
  readonly siblings: Siblings
  readonly #stopping = new AbortController()
  readonly #ended = new Set<() => void>()
  readonly #waiting = new Map<number, (snapshots: readonly MetricsSnapshot[]) => void>()
  #othersNotReady: string | undefined
  #othersStop = false
  #own: Metrics | undefined
  #asked = 0

  constructor(index: number, sockets: string) {
    this.index = index
    this.signal = this.#stopping.signal
    const notReady = (): string | undefined => this.#othersNotReady
    const stop = (): boolean => this.#othersStop
    this.siblings = {
      sockets,
      get notReady() {
        return notReady()
      },
      get areStopping() {
        return stop()
      },
      onEnded: (callback) => void this.#ended.add(callback),
    }
    process.on('message', (message: ToWorker) => this.#receive(message))
    // The supervisor was killed: nobody would end this process.
    process.once('disconnect', () => {
      if (basename(sockets).startsWith(socketsPrefix)) rmSync(sockets, { recursive: true, force: true })
      process.exit(1)
    })
    // A terminal sends its signals to all processes, and the supervisor passes them on: the second one means nothing.
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => this.#stop(`stopped by ${name}`))
  }

  /** The metrics with a scrape that shows the sums over all workers. */
  shared(own: Metrics): Metrics {
    this.#own = own
    const scrape = async (): ReturnType<Metrics['scrape']> =>
      await scrapeOfAll([await own.snapshot(), ...(await this.#snapshots())])
    return { ...own, scrape }
  }

  /**
   * Tells the supervisor that this worker works, and from now on that it lives. `says` is for the user; the first
   * worker's counts. `name` is that of its socket.
   */
  ready(says: string, part: { readonly name?: string; readonly notReady?: string | undefined } = {}): void {
    send({ kind: 'ready', says, name: part.name ?? '' })
    const tell = (): void => {
      const { notReady } = part
      send({ kind: 'alive', ...(notReady !== undefined && { notReady }) })
    }
    setInterval(tell, aliveMs).unref()
  }

  #receive(message: ToWorker): void {
    switch (message.kind) {
      case 'stop':
        this.#othersStop = true
        this.#stop('the supervisor stops')
        break
      case 'ended':
        for (const callback of this.#ended) callback()
        break
      case 'siblings':
        this.#othersNotReady = message.notReady
        break
      case 'ask':
        void this.#answer(message.id)
        break
      case 'snapshots':
        this.#waiting.get(message.id)?.(message.snapshots)
    }
  }

  #stop(why: string): void {
    if (!this.signal.aborted) this.#stopping.abort(new Error(why))
  }

  async #answer(id: number): Promise<void> {
    send({ kind: 'snapshot', id, snapshot: (await this.#own?.snapshot()) ?? [] })
  }

  /** The metrics of the other workers; of none if the supervisor does not answer. */
  #snapshots(): Promise<readonly MetricsSnapshot[]> {
    const id = ++this.#asked
    const { promise, resolve } = Promise.withResolvers<readonly MetricsSnapshot[]>()
    const timer = setTimeout(() => resolve([]), answerMs)
    this.#waiting.set(id, resolve)
    send({ kind: 'ask', id })
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(id)
    })
  }
}

/** The place of this process among workers; undefined if no supervisor has started it. */
export function tryWorker(): Worker | undefined {
  const { [variables.index]: index, [variables.sockets]: sockets } = process.env
  if (index === undefined || sockets === undefined || process.send === undefined) return undefined
  return new Worker(Number(index), sockets)
}

function send(message: ToSupervisor): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
}
