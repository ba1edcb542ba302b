// One of the workers of a server, as its supervisor started it.
import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import type { Siblings } from '#cli/roles/replica.ts'
import { countersOf, scrapeOfAll, type Metrics, type MetricsSnapshot } from '#telemetry/index.ts'
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
  #part: { readonly notReady?: string | undefined } = {}
  #asked = 0
  /** What the supervisor answered last. */
  #others: readonly MetricsSnapshot[] = []

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
    const leave = (): never => {
      if (basename(sockets).startsWith(socketsPrefix)) rmSync(sockets, { recursive: true, force: true })
      process.exit(1)
    }
    process.once('disconnect', leave)
    if (!process.connected) leave()
    setInterval(() => this.#live(), aliveMs).unref()
    // Without a file to open again, the signal means nothing: by default it would end the process.
    process.on('SIGHUP', () => undefined)
    // A terminal sends its signals to all processes, and the supervisor passes them on: the second one means nothing.
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => this.#stop(`stopped by ${name}`))
  }

  /** The metrics with a scrape that shows the sums over all workers. */
  shared(own: Metrics): Metrics {
    this.#own = own
    const scrape = async (): ReturnType<Metrics['scrape']> => {
      const snapshot = await own.snapshot()
      return await scrapeOfAll([snapshot, ...(await this.#snapshots(snapshot))])
    }
    return { ...own, scrape }
  }

  /**
   * Tells the supervisor that this worker works. `says` is for the user; the first worker's counts. `name` is that of
   * its socket; `notReady` is read every second.
   */
  ready(says: string, part: { readonly name?: string; readonly notReady?: string | undefined } = {}): void {
    this.#part = part
    send({ kind: 'ready', says, name: part.name ?? '' })
  }

  #live(): void {
    const { notReady } = this.#part
    send({ kind: 'alive', ...(notReady !== undefined && { notReady }) })
  }

  #receive(message: ToWorker): void {
    switch (message.kind) {
      case 'stop':
        this.#othersStop = true
        this.#stop('the supervisor stops')
        break
      case 'reopen':
        process.emit('SIGHUP', 'SIGHUP')
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
        this.#others = message.snapshots
        this.#waiting.get(message.id)?.(message.snapshots)
    }
  }

  #stop(why: string): void {
    if (!this.signal.aborted) this.#stopping.abort(new Error(why))
  }

  async #answer(id: number): Promise<void> {
    // A gauge that throws must not end the process; the scrape of this worker itself tells the error.
    const snapshot = await this.#own?.snapshot().catch(() => [])
    send({ kind: 'snapshot', id, snapshot: snapshot ?? [] })
  }

  /** The metrics of the other workers; if the supervisor does not answer, what they had counted before. */
  #snapshots(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]> {
    const id = ++this.#asked
    const { promise, resolve } = Promise.withResolvers<readonly MetricsSnapshot[]>()
    const timer = setTimeout(() => resolve(this.#others.map(countersOf)), answerMs)
    this.#waiting.set(id, resolve)
    send({ kind: 'ask', id, own })
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
