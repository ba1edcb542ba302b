// Runs offloaded requests on worker threads: one, and a second one while a logical cluster waits for another's long
// request.
import { requestEntityTooLarge, serviceUnavailable, StatusError, timedOut } from '#apimachinery/status/index.ts'
import { containerMemory, currentContext, inSpan, processTracer } from '#telemetry/index.ts'
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'
import type { ReadableForm } from '#virtualapi/codec/responses.ts'
import type { Offload, OffloadableCall } from '#virtualapi/endpoints/call/dependencies.ts'
import type { BytesResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { Outbound } from '#virtualapi/outbound/calls/outbound.ts'
import type { PlainCluster } from '#virtualapi/request/plain-cluster.ts'
import type { Providers } from '#virtualapi/write/admission/provider-admission.ts'
import type { Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import { findThread } from './find-thread.ts'
import type { Job } from './job.ts'
import { JobQueue } from './job-queue.ts'
import { owned, type JobResult, type OffloadedRequest } from './protocol.ts'
import { tellView } from './told-view.ts'
import { tellFleet } from './told-fleet.ts'
import { WorkerThread, type Loss, type WorkerThreadOptions } from './worker-thread.ts'

const maxThreads = 2
/** How long a job waits for jobs of other logical clusters before the second thread is started, milliseconds. */
const secondThreadAfterMs = 100
/** How many times a job is given to a thread if its threads end because of other jobs. */
const maxAttempts = 3
const defaultIdleMs = 60_000
/** A legitimate request computes for less than a second; the rest leaves room for a busy machine. */
const defaultMaxComputeMs = 15_000
/** Enough for two bodies of the maximum size. */
const defaultMaxHeapMb = 768
/**
 * The heaps of both threads may take half the memory of the container together, so that none of their jobs ends the
 * process.
 */
const heapShare = 1 / 4

export interface OffloadThreadOptions {
  /** True if LogicalCluster objects are stored in our own logical cluster `root`. */
  readonly hasRoot: boolean
  /** The only cluster of the server; absent: it serves logical clusters. */
  readonly plain?: PlainCluster | undefined
  /** Makes the calls to webhooks. */
  readonly outbound: Outbound
  /** Whether a member may run pods of a logical cluster. */
  readonly mayRunPods: (cluster: OffloadedRequest['cluster']) => boolean
  /** The members and the rules of admins about them, for admission; absent where there are none. */
  readonly fleet?: () => Fleet | undefined
  /** Finds definitions that other logical clusters share; absent where none are shared. */
  readonly definition?: WorkerThreadOptions['definition']
  /** The tree of logical clusters; absent: no logical cluster has a parent. */
  readonly tree?: { readonly ancestors: Ancestors }
  /** The providers whose admission acts in consumers; absent: none do. */
  readonly providers?: Providers
  /** A thread without jobs ends after this time, milliseconds. Default one minute. */
  readonly idleMs?: number
  /** How long a request may compute at once before its thread is ended, milliseconds. Default 15 s. */
  readonly maxComputeMs?: number
  /** The memory of the process, bytes. Default: that of its container. */
  readonly memoryBytes?: number
}

type JobRequest = Pick<Job, 'flow' | 'bytes' | 'objects' | 'above'> & { readonly exchange: Exchange }

/**
 * Answers requests that would block the event loop for tens of milliseconds on worker threads of lower priority.
 * Logical clusters are served round robin, each on one thread at a time; the queues are bounded. A request that
 * computes for too long, or needs too much memory, ends its thread: it alone fails, and the others run again on a new
 * one.
 */
export class OffloadThread implements Offload, AsyncDisposable {
  readonly #options: Required<
    Omit<OffloadThreadOptions, 'memoryBytes' | 'fleet' | 'plain' | 'definition' | 'tree' | 'providers'>
  > &
    Pick<WorkerThreadOptions, 'fleet' | 'plain' | 'definition'> & { readonly maxHeapMb: number }
  readonly #ancestors: Ancestors | undefined
  readonly #providers: Providers | undefined
  readonly #queue = new JobQueue()
  readonly #threads = new Set<WorkerThread>()
  #lastJob = 0
  #secondThread: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({
    hasRoot,
    plain,
    outbound,
    mayRunPods,
    fleet,
    definition,
    idleMs = defaultIdleMs,
    maxComputeMs = defaultMaxComputeMs,
    memoryBytes = containerMemory(),
    tree,
    providers,
  }: OffloadThreadOptions) {
    this.#ancestors = tree?.ancestors
    this.#providers = providers
    const maxHeapMb = Math.min(defaultMaxHeapMb, Math.floor((memoryBytes * heapShare) / (1024 * 1024)))
    const told = fleet && tellFleet(fleet)
    this.#options = { hasRoot, plain, outbound, mayRunPods, fleet: told, definition, idleMs, maxComputeMs, maxHeapMb }
  }

  /**
   * The answer of this call's endpoint. Rejects with 429 if the queue is full, 504 if it computed for too long, 413 if
   * it needed too much memory, 503 if the thread ended for another reason.
   */
  async answer({ exchange, cluster, objects, target }: OffloadableCall): Promise<BytesResponse> {
    const { request, user } = exchange
    const { method, url, rawHeaders } = request
    const body = hasBody(exchange) ? await request.body() : new Uint8Array()
    const isLoopback = request.loopbackUser !== undefined
    await this.#ancestors?.load(cluster.id, exchange.signal)
    const { definition } = target
    const view = tellView(exchange, cluster, target.context.rule)
    const provider = await this.#providers?.of({ definition, objects, signal: exchange.signal })
    const others = [...(this.#ancestors?.all(cluster.id) ?? []), ...(provider === undefined ? [] : [provider])]
    const known = others.map((other) => other.cluster)
    const above = others.map((other) => other.objects)
    // A provider pays for its own requests.
    const flow = view?.provider.id ?? cluster.id
    const outcome = await this.#run({ flow, bytes: body.length, objects, above, exchange }, (job) => {
      const own = owned(body)
      const { now } = target.context
      const mayRunPods = this.#options.mayRunPods(cluster)
      const heavyRequest = {
        method,
        url,
        rawHeaders,
        body: own,
        user,
        cluster,
        known,
        view,
        mayRunPods,
        isLoopback,
        recordsRequest: exchange.recordsRequest,
        now,
      }
      return { message: { do: 'answer', job, request: heavyRequest }, transfer: [own.buffer] }
    })
    if (outcome.is !== 'failed') {
      // The worker's warnings replace those of this thread: the worker prepares the call again, and so repeats them.
      exchange.warnings.splice(0, exchange.warnings.length, ...outcome.warnings)
      if (outcome.named !== undefined) exchange.names(outcome.named)
      for (const [key, value] of outcome.annotations ?? []) exchange.annotate(key, value)
      if (outcome.requested !== undefined) exchange.requested(outcome.requested)
    }
    return responseOf(outcome)
  }

  /** Reformats a response. Rejects like `answer`. */
  async reformat(
    response: BytesResponse,
    form: ReadableForm,
    { exchange }: { exchange: Exchange },
  ): Promise<BytesResponse> {
    const flow = exchange.cluster?.id ?? '-'
    const outcome = await this.#run(
      { flow, bytes: response.body.length, objects: undefined, above: [], exchange },
      (job) => {
        const body = owned(response.body)
        return { message: { do: 'reformat', job, answer: { ...response, body }, form }, transfer: [body.buffer] }
      },
    )
    return responseOf(outcome)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#secondThread)
    const jobs = [...this.#threads].flatMap((thread) => thread.jobs)
    const ended = [...this.#threads].map((thread) => thread.end())
    this.#threads.clear()
    const why = new Error('the server is shutting down')
    for (const { settle } of [...jobs, ...this.#queue.clear()]) settle(threadEnded(why))
    await Promise.all(ended)
  }

  #run(request: JobRequest, message: (job: number) => ReturnType<Job['message']>): Promise<JobResult> {
    const tracer = processTracer()
    if (tracer === undefined) return this.#queued(request, message)
    return inSpan(tracer, 'Offload', () => this.#queued(request, message), { attributes: { bytes: request.bytes } })
  }

  #queued(
    { flow, bytes, objects, above, exchange }: JobRequest,
    message: (job: number) => ReturnType<Job['message']>,
  ): Promise<JobResult> {
    const { signal } = exchange
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      if (this.#isClosed) throw threadEnded(new Error('the server is shutting down'))
      const id = ++this.#lastJob
      const abort = (): void => {
        if (!this.#queue.remove(job)) for (const thread of this.#threads) thread.abort(job)
        job.settle(signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason }))
      }
      const settle = (outcome: JobResult | Error): void => {
        signal.removeEventListener('abort', abort)
        if (outcome instanceof Error) reject(outcome)
        else resolve(outcome)
      }
      const job: Job = {
        id,
        flow,
        bytes,
        objects,
        above,
        signal,
        message: () => message(id),
        settle,
        whileWaiting: (response) => exchange.whileWaiting(response),
        turn: () => exchange.turn(),
        inTrace: currentContext(),
        queuedAt: performance.now(),
        attempts: 0,
        calls: 0,
        hasWritten: false,
      }
      this.#queue.add(job)
      signal.addEventListener('abort', abort, { once: true })
      this.#next()
    })
  }

  /** Starts waiting jobs while threads are free, taking the logical clusters round robin. */
  #next(): void {
    clearTimeout(this.#secondThread)
    if (this.#isClosed) return
    for (let isStarted = true; isStarted;) {
      isStarted = false
      const { flows } = this.#queue
      for (const flow of flows) {
        const thread = this.#threadFor(flow, flows.length)
        const job = thread === undefined ? undefined : this.#queue.take(flow)
        if (job === undefined) continue
        thread?.start(job)
        isStarted = true
      }
    }
    if (this.#queue.flows.length === 0 || this.#threads.size >= maxThreads) return
    this.#secondThread = setTimeout(() => this.#next(), secondThreadAfterMs)
  }

  /** The thread for the next job of a logical cluster; undefined: it must wait. */
  #threadFor(flow: string, waitingFlows: number): WorkerThread | undefined {
    const found = findThread([...this.#threads], { flow, waitingFlows })
    if (found !== 'another') return found
    const waitedMs = performance.now() - (this.#queue.peek(flow)?.queuedAt ?? 0)
    const mayOpen = this.#threads.size === 0 || (this.#threads.size < maxThreads && waitedMs >= secondThreadAfterMs)
    return mayOpen ? this.#open() : undefined
  }

  #open(): WorkerThread {
    const thread = new WorkerThread({
      ...this.#options,
      onDone: ({ settle }, outcome) => {
        settle(outcome)
        this.#next()
      },
      onWaiting: () => this.#next(),
      onLost: (lost, loss) => this.#lose(lost, loss),
    })
    this.#threads.add(thread)
    return thread
  }

  /** Fails the job that ended the thread; the others run again, unless they have written already. */
  #lose(thread: WorkerThread, { culprit, running, why, cause }: Loss): void {
    this.#threads.delete(thread)
    for (const job of running.toReversed()) {
      if (job.signal.aborted) continue
      if (job === culprit) job.settle(refusalOf(why, this.#options.maxComputeMs))
      else if (job.hasWritten || job.attempts >= maxAttempts) job.settle(threadEnded(cause))
      else this.#queue.putBack(job)
    }
    this.#next()
  }
}

function refusalOf(why: Loss['why'], maxComputeMs: number): StatusError {
  if (why === 'memory') return requestEntityTooLarge('the request was given up, because it needs too much memory')
  return timedOut(`the request was given up, because it computed for more than ${maxComputeMs / 1000} s`)
}

function threadEnded(cause: Error): StatusError {
  return serviceUnavailable('the thread for large objects ended, please try again', cause)
}

function hasBody(exchange: Exchange): boolean {
  return exchange.info.verb !== 'get'
}

function responseOf(outcome: JobResult): BytesResponse {
  if (outcome.is === 'failed') throw new Error(`on the offload thread: ${outcome.stack}`)
  if (outcome.is === 'answer') return outcome.answer
  const { status, headers, text, cause } = outcome
  throw new StatusError(status, { headers: { ...headers }, ...(text === undefined ? {} : { text }), cause })
}
