// The supervisor of several workers of one server: it starts each as a process of the same program, starts a worker
// again that has ended, ends one that does not react, and stops all of them together. It serves nothing itself.
import { fork, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { aborted } from '#cli/process/process-signal.ts'
import { ExitCode } from '#cli/process/exit-error.ts'
import { containerMemory, processesVariable, type Logger, type MetricsSnapshot } from '#telemetry/index.ts'
import { aliveMs, socketsPrefix, variables, type ToSupervisor, type ToWorker } from './messages.ts'

export interface Supervision {
  /** Number of workers; at least 2. */
  readonly count: number
  /** The port of all workers, instead of that in the arguments. */
  readonly port: number
  readonly log: Logger
  /** Aborts when all are to stop. */
  readonly signal: AbortSignal
  /** Called once, when all workers work, with what the first one says. */
  readonly ready: (says: string) => void
}

/** Signs of life that may be missing before a worker counts as not ready, and before it is killed. */
const [missedUntilUnready, missedUntilKilled] = [5, 30]
/** Time before an ended worker is started again, milliseconds: doubled each time, until one has lived for a while. */
const [firstAgainMs, mostAgainMs, steadyMs] = [250, 30_000, 60_000]
/** How long a worker may take to send its metrics, milliseconds. */
const answerMs = 1000

/**
 * Runs until the signal aborts and all workers have ended. Rejects with ExitCode if a worker ends before all of them
 * have served for the first time: it has printed why.
 */
export async function supervise(supervision: Supervision): Promise<void> {
  // The system makes this directory with mode 0700: whoever reaches a socket in it is believed.
  const sockets = await mkdtemp(join(tmpdir(), socketsPrefix))
  const workers = new Supervisor(supervision, sockets)
  try {
    await workers.run()
  } finally {
    await workers.stop()
    await rm(sockets, { recursive: true, force: true })
  }
}

interface Slot {
  readonly index: number
  child: ChildProcess | undefined
  /** The name of the socket; undefined until the worker serves. */
  name: string | undefined
  startedAt: number
  /** Signs of life that are missing. */
  missed: number
  notReady: string | undefined
  /** What the worker was told last about the others. */
  told: string | undefined
  /** Ends since a worker in this place lived for long. */
  ends: number
}

class Supervisor {
  readonly #options: Supervision
  readonly #sockets: string
  readonly #slots: readonly Slot[]
  readonly #waiting = new Map<number, (snapshot: MetricsSnapshot | undefined) => void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  /** Rejects if a worker ends before all have served. */
  readonly #failed = Promise.withResolvers<never>()
  #asked = 0
  #isStopping = false
  #hasServed = false

  constructor(options: Supervision, sockets: string) {
    this.#options = options
    this.#sockets = sockets
    this.#failed.promise.catch(() => undefined)
    this.#slots = Array.from({ length: options.count }, (_, at) => ({
      index: at + 1,
      child: undefined,
      name: undefined,
      startedAt: 0,
      missed: 0,
      notReady: undefined,
      told: undefined,
      ends: 0,
    }))
  }

  async run(): Promise<void> {
    const { signal, ready } = this.#options
    const stopped = aborted(signal)
    const says = await Promise.race([this.#startAll(), this.#failed.promise, stopped])
    if (says === undefined) return
    this.#hasServed = true
    ready(says)
    const timer = setInterval(() => this.#look(), aliveMs)
    await stopped
    clearInterval(timer)
  }

  /** Asks all workers to stop, and resolves when they have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(
      this.#slots.map(async ({ child }) => {
        // Without a pid, it was never started.
        if (child?.pid === undefined) return
        const { promise, resolve } = Promise.withResolvers<undefined>()
        child.once('exit', () => resolve(undefined))
        tell(child, { kind: 'stop' })
        await promise
      }),
    )
  }

  /** The first one creates what all of them need, and tells mistakes once. Resolves with what it says when all work. */
  async #startAll(): Promise<string> {
    const [first, ...others] = this.#slots
    if (first === undefined) throw new Error('there must be a worker')
    const says = await this.#start(first)
    if (!this.#isStopping) await Promise.all(others.map((slot) => this.#start(slot)))
    return says
  }

  /** Resolves with what the worker says when it works; never, if it ends before. */
  #start(slot: Slot): Promise<string> {
    const { count, port } = this.#options
    const [program = '', ...args] = process.argv.slice(1)
    const child = fork(program, [...args, '--port', String(port)], {
      execArgv: [...process.execArgv, ...heapLimit(count)],
      env: {
        ...process.env,
        [variables.index]: String(slot.index),
        [variables.sockets]: this.#sockets,
        [processesVariable]: String(count),
      },
    })
    const startedAt = performance.now()
    Object.assign(slot, { child, name: undefined, startedAt, missed: 0, notReady: undefined, told: undefined })
    // If the system starts no process, there is an error and no exit.
    child.once('error', (error) => {
      if (child.pid === undefined) this.#ended(slot, { code: null, signal: null, error })
    })
    child.on('error', () => undefined)
    child.once('exit', (code, signal) => this.#ended(slot, { code, signal }))
    const { promise, resolve } = Promise.withResolvers<string>()
    child.on('message', (message: ToSupervisor) => {
      if (message.kind === 'ready') {
        slot.name = message.name
        resolve(message.says)
      } else void this.#receive(slot, child, message)
    })
    return promise
  }

  #ended(slot: Slot, how: { readonly code: number | null; readonly signal: string | null; error?: Error }): void {
    const { log } = this.#options
    const { index, name, startedAt } = slot
    slot.child = undefined
    if (name !== undefined && name !== '') void rm(join(this.#sockets, name), { force: true }).catch(() => undefined)
    if (this.#isStopping) return
    if (!this.#hasServed) {
      this.#failed.reject(how.error ?? new ExitCode(how.code ?? 1))
      return
    }
    for (const { child } of this.#slots) if (child !== undefined) tell(child, { kind: 'ended' })
    slot.ends = performance.now() - startedAt > steadyMs ? 0 : slot.ends + 1
    const againMs = Math.min(firstAgainMs * 2 ** slot.ends, mostAgainMs)
    log.error('a worker has ended and is started again', { worker: index, ...how, againMs })
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      void this.#start(slot).then(() => log.info('a worker serves again', { worker: index }))
    }, againMs)
    this.#timers.add(timer)
  }

  async #receive(slot: Slot, child: ChildProcess, message: Exclude<ToSupervisor, { kind: 'ready' }>): Promise<void> {
    switch (message.kind) {
      case 'alive':
        slot.missed = 0
        slot.notReady = message.notReady
        break
      case 'ask': {
        const others = this.#slots.filter((other) => other !== slot)
        const snapshots = await Promise.all(others.map((other) => this.#snapshotOf(other)))
        const { id } = message
        tell(child, { kind: 'snapshots', id, snapshots: snapshots.filter((one) => one !== undefined) })
        break
      }
      case 'snapshot':
        this.#waiting.get(message.id)?.(message.snapshot)
    }
  }

  /** The metrics of a worker; undefined if it does not serve or does not answer. */
  #snapshotOf({ child, name }: Slot): Promise<MetricsSnapshot | undefined> {
    if (child === undefined || name === undefined) return Promise.resolve(undefined)
    const id = ++this.#asked
    const { promise, resolve } = Promise.withResolvers<MetricsSnapshot | undefined>()
    const timer = setTimeout(() => resolve(undefined), answerMs)
    this.#waiting.set(id, resolve)
    tell(child, { kind: 'ask', id })
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(id)
    })
  }

  /**
   * Counts missing signs of life, kills the workers that do not react, and tells each what is wrong with the others.
   * Counts instead of times: after the whole machine slept, only one sign is missing.
   */
  #look(): void {
    const { log } = this.#options
    const serving = this.#slots.filter(({ child, name }) => child !== undefined && name !== undefined)
    for (const slot of serving) {
      const { index, child } = slot
      if (++slot.missed > missedUntilUnready) slot.notReady = `worker ${index} does not react`
      if (slot.missed !== missedUntilKilled) continue
      log.error('a worker does not react and is killed', { worker: index, afterMs: missedUntilKilled * aliveMs })
      child?.kill('SIGKILL')
    }
    for (const slot of serving) {
      const notReady = serving.find((other) => other !== slot && other.notReady !== undefined)?.notReady
      if (notReady === slot.told || slot.child === undefined) continue
      slot.told = notReady
      tell(slot.child, { kind: 'siblings', ...(notReady !== undefined && { notReady }) })
    }
  }
}

/** The flag with a worker's part of the heap that one process would have. None without a limit of the container. */
function heapLimit(count: number): string[] {
  const given = [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
  if (containerMemory() === Infinity || given.some((flags) => flags.includes('--max-old-space-size'))) return []
  return [`--max-old-space-size=${Math.floor(getHeapStatistics().heap_size_limit / count / 1024 / 1024)}`]
}

function tell(child: ChildProcess, message: ToWorker): void {
  // A worker that has just ended: its `exit` follows.
  if (child.connected) child.send(message, () => undefined)
}
