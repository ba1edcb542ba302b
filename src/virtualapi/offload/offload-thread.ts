// Runs offloaded requests on a worker thread, which starts with the first of them and stops after an idle time.
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import type { ClusterId } from '../../apimachinery/meta/index.ts'
import { serviceUnavailable, StatusError, tooManyRequests } from '../../apimachinery/status/index.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
import type { ReadableForm } from '../codec/answers.ts'
import type { Offload, OffloadableCall } from '../endpoints/parts.ts'
import type { BytesAnswer, Exchange } from '../exchange/exchange.ts'
import { readFor, writeFor } from './main-side.ts'
import { owned, type FromWorker, type JobResult, type ToWorker, type WorkerSettings } from './protocol.ts'

/** Bounds of the queues of one logical cluster and of all; above them 429. */
const maxWaiting = { jobs: 64, bytes: 16 * 1024 * 1024, allJobs: 1024, allBytes: 128 * 1024 * 1024 }
/** Two jobs: one computes while the other waits for its write to be durable. */
const maxRunning = 2
const defaultIdleMs = 60_000
/** Enough for two bodies of the maximum size. */
const maxHeapMb = 768

interface Job {
  readonly id: number
  readonly flow: string
  readonly bytes: number
  readonly objects: ClusterObjects | undefined
  readonly signal: AbortSignal
  readonly message: () => { readonly message: ToWorker; readonly transfer: ArrayBuffer[] }
  readonly settle: (outcome: JobResult | Error) => void
}

interface Thread {
  readonly worker: Worker
  readonly answered: Int32Array<SharedArrayBuffer>
  readonly answers: MessagePort
}

/**
 * Answers requests that would block the event loop for tens of milliseconds on a worker thread of lower priority. Logical
 * clusters are served round robin; the queues are bounded.
 */
export class OffloadThread implements Offload, AsyncDisposable {
  readonly #hasRoot: boolean
  readonly #idleMs: number
  readonly #waiting = new Map<string, Job[]>()
  readonly #running = new Map<number, Job>()
  #waitingJobs = 0
  #waitingBytes = 0
  #lastJob = 0
  #thread: Thread | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  /** `hasRoot`: LogicalClusters live in our own logical cluster `root`. `idleMs`: default one minute. */
  constructor({ hasRoot, idleMs = defaultIdleMs }: { hasRoot: boolean; idleMs?: number }) {
    this.#hasRoot = hasRoot
    this.#idleMs = idleMs
  }

  /** True while the thread exists. */
  get isRunning(): boolean {
    return this.#thread !== undefined
  }

  /** The answer of this call's endpoint. Rejects with 429 if the queue is full, 503 if the thread ended. */
  async answer({ exchange, cluster, objects, target }: OffloadableCall): Promise<BytesAnswer> {
    const { request, user } = exchange
    const { method, url, rawHeaders } = request
    const body = hasBody(exchange) ? await request.body() : new Uint8Array()
    const isLoopback = request.loopbackUser !== undefined
    const outcome = await this.#run(
      { flow: cluster.id, bytes: body.length, objects, signal: exchange.signal },
      (job) => {
        const own = owned(body)
        const { now } = target.context
        const heavyRequest = { method, url, rawHeaders, body: own, user, cluster, isLoopback, now }
        return { message: { do: 'answer', job, request: heavyRequest }, transfer: [own.buffer] }
      },
    )
    if (outcome.is !== 'failed') {
      // The worker's warnings include those that were added before.
      exchange.warnings.splice(0, exchange.warnings.length, ...outcome.warnings)
      if (outcome.named !== undefined) exchange.names(outcome.named)
    }
    return answerOf(outcome)
  }

  /** Reformats an answer. Rejects as `answer`. */
  async reformat(answer: BytesAnswer, form: ReadableForm, { exchange }: { exchange: Exchange }): Promise<BytesAnswer> {
    const { signal } = exchange
    const flow = exchange.cluster?.id ?? '-'
    const outcome = await this.#run({ flow, bytes: answer.body.length, objects: undefined, signal }, (job) => {
      const body = owned(answer.body)
      return { message: { do: 'reformat', job, answer: { ...answer, body }, form }, transfer: [body.buffer] }
    })
    return answerOf(outcome)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#end(new Error('the server is shutting down'))
  }

  #run(
    { flow, bytes, objects, signal }: Pick<Job, 'flow' | 'bytes' | 'objects' | 'signal'>,
    message: (job: number) => ReturnType<Job['message']>,
  ): Promise<JobResult> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const queue = this.#waiting.get(flow) ?? []
      this.#requireRoom(queue, bytes)
      const id = ++this.#lastJob
      const abort = (): void => {
        this.#withdraw(job)
        job.settle(signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason }))
      }
      const settle = (outcome: JobResult | Error): void => {
        signal.removeEventListener('abort', abort)
        if (outcome instanceof Error) reject(outcome)
        else resolve(outcome)
      }
      const job: Job = { id, flow, bytes, objects, signal, message: () => message(id), settle }
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.set(flow, queue)
      queue.push(job)
      this.#count(1, bytes)
      this.#next()
    })
  }

  #requireRoom(queue: readonly Job[], bytes: number): void {
    const queued = queue.reduce((sum, job) => sum + job.bytes, 0)
    const isFull =
      queue.length >= maxWaiting.jobs ||
      (queue.length > 0 && queued + bytes > maxWaiting.bytes) ||
      this.#waitingJobs >= maxWaiting.allJobs ||
      this.#waitingBytes + bytes > maxWaiting.allBytes
    if (isFull) throw tooManyRequests('too many requests about large objects are waiting, please try again later')
  }

  #count(jobs: number, bytes: number): void {
    this.#waitingJobs += jobs
    this.#waitingBytes += bytes
  }

  /** Starts waiting jobs, one of each logical cluster at a time, round robin. */
  #next(): void {
    while (this.#running.size < maxRunning && !this.#isClosed) {
      const [first] = this.#waiting
      if (first === undefined) break
      const [flow, queue] = first
      // Move the flow to the end of the queue.
      this.#waiting.delete(flow)
      const job = queue.shift()
      if (queue.length > 0) this.#waiting.set(flow, queue)
      if (job !== undefined) this.#start(job)
    }
    clearTimeout(this.#idle)
    if (this.#running.size > 0 || this.#thread === undefined) return
    this.#idle = setTimeout(() => void this.#end(new Error('the thread was not needed')), this.#idleMs)
    this.#idle.unref()
  }

  #start(job: Job): void {
    this.#count(-1, -job.bytes)
    this.#running.set(job.id, job)
    this.#thread ??= this.#open()
    const { message, transfer } = job.message()
    this.#thread.worker.postMessage(message, transfer)
  }

  #withdraw(job: Job): void {
    const queue = this.#waiting.get(job.flow) ?? []
    const at = queue.indexOf(job)
    if (at >= 0) {
      queue.splice(at, 1)
      if (queue.length === 0) this.#waiting.delete(job.flow)
      this.#count(-1, -job.bytes)
    } else this.#thread?.worker.postMessage({ do: 'abort', job: job.id } satisfies ToWorker)
  }

  #open(): Thread {
    // The worker has the extension of this file: .ts in a checkout, .js when built.
    const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
    const { port1, port2 } = new MessageChannel()
    const answered = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(file, {
      workerData: { hasRoot: this.#hasRoot, answered, answers: port2 } satisfies WorkerSettings,
      transferList: [port2],
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
      name: 'offload',
    })
    const thread: Thread = { worker, answered, answers: port1 }
    worker.on('message', (message: FromWorker) => this.#hear(thread, message))
    const lost = (error: Error): void => {
      if (this.#thread === thread) void this.#end(error)
    }
    worker.on('error', lost)
    worker.on('exit', () => lost(new Error('the thread ended')))
    return thread
  }

  /** Ends the thread and rejects its running jobs. The next job starts a new thread. */
  async #end(why: Error): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    const running = [...this.#running.values()]
    this.#running.clear()
    for (const { settle } of running)
      settle(serviceUnavailable('the thread for large objects ended, please try again', why))
    if (this.#isClosed) for (const { settle } of [...this.#waiting.values()].flat()) settle(why)
    thread?.answers.close()
    const ended = thread?.worker.terminate()
    this.#next()
    await ended
  }

  #hear(thread: Thread, message: FromWorker): void {
    switch (message.is) {
      case 'read': {
        thread.answers.postMessage(readFor(this.#objectsOf(message.cluster), message.read))
        Atomics.add(thread.answered, 0, 1)
        Atomics.notify(thread.answered, 0)
        return
      }
      case 'write': {
        const job = this.#running.get(message.job)
        void writeFor(job?.objects, message.what, job?.signal).then((result) =>
          thread.worker.postMessage({ do: 'written', write: message.write, result } satisfies ToWorker),
        )
        return
      }
      case 'done': {
        const job = this.#running.get(message.job)
        this.#running.delete(message.job)
        job?.settle(message.outcome)
        this.#next()
      }
    }
  }

  #objectsOf(cluster: ClusterId): ClusterObjects | undefined {
    for (const { objects } of this.#running.values()) if (objects?.cluster === cluster) return objects
    return undefined
  }
}

function hasBody(exchange: Exchange): boolean {
  return exchange.info.verb !== 'get'
}

function answerOf(outcome: JobResult): BytesAnswer {
  if (outcome.is === 'failed') throw new Error(`on the offload thread: ${outcome.stack}`)
  if (outcome.is === 'answer') return outcome.answer
  const { status, headers, text, cause } = outcome
  throw new StatusError(status, { headers: { ...headers }, ...(text === undefined ? {} : { text }), cause })
}
