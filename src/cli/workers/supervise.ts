// The supervisor of several workers of one server: it starts each as a process of the same program, starts a worker
// again that has ended, ends one that does not react, and stops all of them together. It serves nothing itself.
import { fork, type ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aborted } from '#cli/process/process-signal.ts'
import { ExitCode } from '#cli/process/exit-error.ts'
import {
  addCounters,
  containerLimit,
  countersOf,
  oldGenerationLimit,
  processesVariable,
  type Logger,
  type MetricsSnapshot,
} from '#telemetry/index.ts'
import { aliveMs, socketsPrefix, variables, type ToSupervisor, type ToWorker } from './messages.ts'

export interface Supervision {
  /** Number of workers; at least 2. */
  readonly count: number
  /** The port of all workers, instead of that in the arguments. */
  readonly port: number
  readonly log: Logger
  /** Aborts when all are to stop. */
  readonly signal: AbortSignal
  /** Whether SIGHUP asks the workers to open files again. Else it ends the process, as the system does by default. */
  readonly reopens: boolean
  /** Called once, when all workers work, with what the first one says. */
  readonly ready: (says: string) => void
}

/** Signs of life that may be missing before a worker counts as not ready, and before it is killed. */
const [missedUntilUnready, missedUntilKilled] = [5, 30]
/** Time before an ended worker is started again, milliseconds: doubled each time, until one has lived for a while. */
const [firstAgainMs, mostAgainMs, steadyMs] = [250, 30_000, 60_000]
/** How long workers may take to stop before they are killed, milliseconds: a pod has 60 s. */
const stopMs = 25_000
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
  const reopen = (): void => workers.reopen()
  if (supervision.reopens) process.on('SIGHUP', reopen)
  // A second signal to stop ends this process at once.
  const end = (): void => {
    workers.kill()
    rmSync(sockets, { recursive: true, force: true })
  }
  process.on('exit', end)
  try {
    await workers.run()
  } finally {
    await workers.stop()
    await rm(sockets, { recursive: true, force: true })
    process.off('exit', end)
    process.off('SIGHUP', reopen)
  }
}

interface Slot {
  readonly index: number
  child: ChildProcess | undefined
  /** The name of the socket; undefined until the worker serves. */
  name: string | undefined
  startedAt: number
  /** Whether it has given a sign of life: until then it loads its program. */
  isWatched: boolean
  /** Signs of life that are missing. */
  missed: number
  notReady: string | undefined
  /** What the worker was told last about the others. */
  told: string | undefined
  /** The last metrics of this process. */
  last: MetricsSnapshot
  /** Ends since a worker in this place lived for long. */
  ends: number
}

class Supervisor {
  readonly #options: Supervision
  readonly #sockets: string
  readonly #slots: readonly Slot[]
  readonly #waiting = new Map<number, (hasAnswered: boolean) => void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  /** Rejects if a worker ends before all have served. */
  readonly #failed = Promise.withResolvers<never>()
  #asked = 0
  /** The counters and histograms of the workers that have ended, so that their sums never decrease. */
  #past: MetricsSnapshot = []
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
      isWatched: false,
      missed: 0,
      notReady: undefined,
      told: undefined,
      last: [],
      ends: 0,
    }))
  }

  async run(): Promise<void> {
    const { signal, ready } = this.#options
    const stopped = aborted(signal)
    const timer = setInterval(() => this.#look(), aliveMs)
    try {
      const says = await Promise.race([this.#startAll(), this.#failed.promise, stopped])
      if (says === undefined) return
      this.#hasServed = true
      ready(says)
      await stopped
    } finally {
      clearInterval(timer)
    }
  }

  /** Asks all workers to open the files of their logs again. */
  reopen(): void {
    for (const { child } of this.#slots) if (child !== undefined) tell(child, { kind: 'reopen' })
  }

  /** Ends all workers at once. */
  kill(): void {
    for (const { child } of this.#slots) child?.kill('SIGKILL')
  }

  /** Asks all workers to stop, and resolves when they have ended. Those that take too long are killed. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#timers) clearTimeout(timer)
    const limit = setTimeout(() => {
      const late = this.#slots.flatMap(({ index, child }) => (child === undefined ? [] : [index]))
      this.#options.log.error('workers do not stop and are killed', { workers: late, afterMs: stopMs })
      this.kill()
    }, stopMs)
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
    clearTimeout(limit)
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
    const fresh = { name: undefined, isWatched: false, missed: 0, notReady: undefined, told: undefined }
    Object.assign(slot, { child, startedAt, ...fresh })
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
        slot.isWatched = true
        resolve(message.says)
      } else void this.#receive(slot, child, message)
    })
    return promise
  }

  #ended(slot: Slot, how: { readonly code: number | null; readonly signal: string | null; error?: Error }): void {
    const { log } = this.#options
    const { index, name, startedAt } = slot
    slot.child = undefined
    this.#past = addCounters(this.#past, slot.last)
    slot.last = []
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
    // What a worker said just before its end may come after it.
    if (slot.child !== child) return
    switch (message.kind) {
      case 'alive':
        slot.missed = 0
        slot.isWatched = true
        slot.notReady = message.notReady
        break
      case 'ask': {
        slot.last = message.own
        const others = this.#slots.filter((other) => other !== slot)
        const answers = await Promise.all(others.map((other) => this.#ask(other)))
        // Read only now, together: a worker that has ended since counts in the past, and once.
        const snapshots = others.map(({ last }, at) => (answers[at] === true ? last : countersOf(last)))
        tell(child, { kind: 'snapshots', id: message.id, snapshots: [...snapshots, this.#past] })
        break
      }
      case 'snapshot':
        if (message.snapshot.length > 0) slot.last = message.snapshot
        this.#waiting.get(message.id)?.(message.snapshot.length > 0)
    }
  }

  /** Asks a worker for its metrics. Resolves with false if it does not serve or does not answer. */
  #ask({ child, name }: Slot): Promise<boolean> {
    if (child === undefined || name === undefined) return Promise.resolve(false)
    const id = ++this.#asked
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), answerMs)
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
    for (const slot of this.#slots.filter(({ child, isWatched }) => child !== undefined && isWatched)) {
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

/** The flag with a worker's part of the old objects that one process could have. None without a limit of the container. */
function heapLimit(count: number): string[] {
  const given = [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
  if (containerLimit() === Infinity || given.some((flags) => flags.includes('--max-old-space-size'))) return []
  return [`--max-old-space-size=${Math.floor(oldGenerationLimit() / count / 1024 / 1024)}`]
}

function tell(child: ChildProcess, message: ToWorker): void {
  // A worker that has just ended: its `exit` follows.
  if (child.connected) child.send(message, () => undefined)
}
