// One worker thread with the jobs that it runs, and the watchdog that ends it when a job computes for too long.
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { EgressError } from '#network/egress/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { Outbound, OutboundRequest } from '#virtualapi/outbound/calls/outbound.ts'
import type { PlainCluster } from '#virtualapi/request/plain-cluster.ts'
import type { Job } from './job.ts'
import { readFor, writeFor } from './main-side.ts'
import {
  type DefinitionRead,
  owned,
  type FromWorker,
  type JobResult,
  type PostResult,
  type ReadResult,
  type ToWorker,
  type WorkerSettings,
  type WriteResult,
} from './protocol.ts'
import type { ToldDefinition } from './told-definition.ts'
import type { ToldFleet } from './told-fleet.ts'

/** How many times the watchdog looks within the time that a job may compute. */
const looksPerDeadline = 30
/** The share of the allowed time that a job may compute after its request was aborted. */
const abandonedShare = 1 / 10

/** Why a thread ended, and the job that caused it; undefined if none is known. */
export interface Loss {
  readonly why: 'deadline' | 'memory' | 'unknown'
  readonly cause: Error
  readonly culprit: Job | undefined
  /** All jobs that ran, the culprit included. */
  readonly running: readonly Job[]
}

export interface WorkerThreadOptions {
  readonly hasRoot: boolean
  readonly plain?: PlainCluster | undefined
  readonly outbound: Outbound
  /** The function that tellFleet makes; absent where there are no members. */
  readonly fleet?: ((known: number) => ToldFleet | undefined) | undefined
  /** The function that finds shared definitions; absent where none are shared. */
  readonly definition?: ((objects: ClusterObjects, read: DefinitionRead) => ToldDefinition | undefined) | undefined
  /** The most that a thread may use for objects, MiB. */
  readonly maxHeapMb: number
  /** How long a job may compute at once, milliseconds. Waiting for a write or a call does not count. */
  readonly maxComputeMs: number
  /** How long a thread stays without a job before it ends, milliseconds. */
  readonly idleMs: number
  readonly onDone: (job: Job, outcome: JobResult) => void
  /** Called when a job begins to wait for an outbound call. */
  readonly onWaiting: () => void
  /** Called once, when the thread has ended for a reason other than a call of `end`. */
  readonly onLost: (thread: WorkerThread, loss: Loss) => void
}

export class WorkerThread {
  readonly #options: WorkerThreadOptions
  readonly #worker: Worker
  readonly #answers: MessagePort
  readonly #answered = new Int32Array(new SharedArrayBuffer(4))
  /** The job that computes (0: none), and a number that changes with each of its steps. Set by the worker. */
  readonly #progress = new Int32Array(new SharedArrayBuffer(8))
  readonly #running = new Map<number, Job>()
  #watchdog: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(options: WorkerThreadOptions) {
    this.#options = options
    // The worker has the extension of this file: .ts in a checkout, .js when built.
    const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
    const { port1, port2 } = new MessageChannel()
    const settings: WorkerSettings = {
      hasRoot: options.hasRoot,
      plain: options.plain,
      hasFleet: options.fleet !== undefined,
      answered: this.#answered,
      answers: port2,
      progress: this.#progress,
    }
    this.#answers = port1
    this.#worker = new Worker(file, {
      workerData: settings,
      transferList: [port2],
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMb },
      name: 'offload',
    })
    this.#worker.on('message', (message: FromWorker) => this.#hear(message))
    this.#worker.on('error', (error: Error & { code?: string }) =>
      this.#lose(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'unknown', error),
    )
    this.#worker.on('exit', () => this.#lose('unknown', new Error('the thread ended')))
  }

  get jobs(): readonly Job[] {
    return [...this.#running.values()]
  }

  start(job: Job): void {
    clearTimeout(this.#idle)
    job.attempts++
    job.calls = 0
    this.#running.set(job.id, job)
    this.#watchdog ??= this.#watch()
    const { message, transfer } = job.message()
    this.#worker.postMessage(message, transfer)
  }

  /**
   * Tells the worker that nobody waits for a job any more. The worker reads the message only when it does not compute.
   */
  abort(job: Job): void {
    if (this.#running.has(job.id)) this.#worker.postMessage({ do: 'abort', job: job.id } satisfies ToWorker)
  }

  /** Ends the thread; jobs that run are not settled. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.#running.clear()
    clearInterval(this.#watchdog)
    clearTimeout(this.#idle)
    this.#answers.close()
    await this.#worker.terminate()
  }

  /**
   * Counts how long one step of a job lasts. A look that comes late, as in a suspended process, counts for two looks at
   * most.
   */
  #watch(): NodeJS.Timeout {
    const { maxComputeMs } = this.#options
    const lookMs = maxComputeMs / looksPerDeadline
    let seen = -1
    let computedMs = 0
    let last = performance.now()
    const look = (): void => {
      const now = performance.now()
      const elapsed = Math.min(now - last, 2 * lookMs)
      last = now
      const job = this.#running.get(Atomics.load(this.#progress, 0))
      const step = Atomics.load(this.#progress, 1)
      computedMs = job !== undefined && step === seen ? computedMs + elapsed : 0
      seen = step
      const allowedMs = job?.signal.aborted === true ? maxComputeMs * abandonedShare : maxComputeMs
      if (computedMs >= allowedMs) this.#lose('deadline', new Error(`a job computed for ${Math.round(computedMs)} ms`))
    }
    return setInterval(look, lookMs).unref()
  }

  #lose(why: Loss['why'], cause: Error): void {
    if (this.#hasEnded) return
    const culprit = why === 'unknown' ? undefined : this.#running.get(Atomics.load(this.#progress, 0))
    const running = this.jobs
    void this.end()
    this.#options.onLost(this, { why, cause, culprit, running })
  }

  #hear(message: FromWorker): void {
    if (this.#hasEnded) return
    switch (message.is) {
      case 'read': {
        this.#answers.postMessage(this.#read(message))
        Atomics.add(this.#answered, 0, 1)
        Atomics.notify(this.#answered, 0)
        return
      }
      case 'write': {
        const job = this.#running.get(message.job)
        if (job !== undefined) job.hasWritten = true
        const write = (): Promise<WriteResult> => writeFor(job?.objects, message.what, job?.signal)
        void (job === undefined ? write() : job.inTrace(write)).then((result) => {
          if (!this.#hasEnded)
            this.#worker.postMessage({ do: 'written', write: message.write, result } satisfies ToWorker)
        })
        return
      }
      case 'post': {
        const job = this.#running.get(message.job)
        if (job !== undefined) void this.#post(job, message)
        return
      }
      case 'done': {
        const job = this.#running.get(message.job)
        this.#running.delete(message.job)
        if (this.#running.size === 0) this.#rest()
        if (job !== undefined) this.#options.onDone(job, message.outcome)
      }
    }
  }

  #read({ cluster, read }: Extract<FromWorker, { is: 'read' }>): ReadResult {
    if (read.do === 'fleet') return { is: 'answer', answer: this.#options.fleet?.(read.known) }
    const objects = this.#objectsOf(cluster)
    if (read.do === 'definition') return { is: 'answer', answer: objects && this.#options.definition?.(objects, read) }
    return readFor(objects, read)
  }

  /** Makes an outbound call of a job. The job computes nothing meanwhile, so another job may take its place. */
  async #post(job: Job, { post, request }: Extract<FromWorker, { is: 'post' }>): Promise<void> {
    job.calls++
    this.#options.onWaiting()
    const result = await this.#result(job, request)
    if (this.#hasEnded) return
    job.calls--
    this.#worker.postMessage({ do: 'posted', post, result } satisfies ToWorker)
  }

  async #result(job: Job, request: OutboundRequest): Promise<PostResult> {
    try {
      await job.turn()
      const { status, body } = await job.whileWaiting(
        job.inTrace(() => this.#options.outbound.post(request, job.signal)),
      )
      return { is: 'answer', answer: { status, body: owned(body) } }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      return { is: 'failure', message, isEgress: error instanceof EgressError }
    }
  }

  #rest(): void {
    clearInterval(this.#watchdog)
    this.#watchdog = undefined
    this.#idle = setTimeout(() => this.#lose('unknown', new Error('the thread was not needed')), this.#options.idleMs)
    this.#idle.unref()
  }

  #objectsOf(cluster: ClusterId): ClusterObjects | undefined {
    for (const { objects } of this.#running.values()) if (objects?.cluster === cluster) return objects
    for (const { above } of this.#running.values())
      for (const objects of above) if (objects.cluster === cluster) return objects
    return undefined
  }
}
