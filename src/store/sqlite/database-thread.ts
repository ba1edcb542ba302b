// The main thread's side of the worker: collects calls while a batch is under way and sends them as the next one.
import { Worker } from 'node:worker_threads'
import { StoreError } from '#store/store.ts'
import {
  Packer,
  type DatabaseAnswer,
  type DatabaseCall,
  type FromWorker,
  type Slice,
  type ToWorker,
  type Values,
  type WorkerSettings,
} from './protocol.ts'

/** Calls per transaction; bounds how long the first of them waits for the last. */
const maxBatchCalls = 1000
const maxBatchBytes = 8 * 1024 * 1024
/** Milliseconds that a deferrable call waits for another call to share its batch. */
const deferralMs = 5
/** Calls that may wait; more are rejected instead of growing the queue. */
const maxWaitingCalls = 100_000

/** A call whose value, if it has one, is not yet copied into the batch's buffer. */
export interface PendingCall {
  readonly make: (value: Slice) => DatabaseCall
  readonly value?: Uint8Array
  /** Whether the call may wait a few milliseconds for another call to share its batch. */
  readonly deferrable?: boolean
  /** Called in the order of the calls, before `afterBatch`. */
  readonly answered: (answer: DatabaseAnswer, values: Values) => void
  readonly failed: (error: Error) => void
}

/** The callbacks of the store that owns the thread. */
export interface DatabaseThreadEvents {
  /** Runs once per batch, after all its calls got their responses. */
  readonly afterBatch: () => void
  /** The thread died: nothing will be read or written any more. Runs once, after the lost calls were rejected. */
  readonly onLost: (error: StoreError) => void
}

const noValue: Slice = { at: 0, length: 0 }
const noBytes = new Uint8Array(0)

/** Created by `DatabaseThread.start`; one batch is under way at a time. */
export class DatabaseThread {
  readonly instanceId: string
  readonly firstRevision: number
  readonly #worker: Worker
  readonly #events: DatabaseThreadEvents
  #waiting: PendingCall[] = []
  #underWay: readonly PendingCall[] | undefined
  #flushPlanned = false
  /** Runs while all waiting calls are deferrable. */
  #deferral: NodeJS.Timeout | undefined
  #failure: StoreError | undefined
  readonly #exited: Promise<void>

  private constructor(worker: Worker, ready: Extract<FromWorker, { type: 'ready' }>, events: DatabaseThreadEvents) {
    this.#worker = worker
    this.#events = events
    this.instanceId = ready.instanceId
    this.firstRevision = ready.revision
    this.#exited = new Promise((resolve) => worker.once('exit', () => resolve()))
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'answers') this.#settle(message.answers, message.values)
      else if (message.type === 'lost') this.#fail(new StoreError('Unavailable', message.message))
    })
    worker.on('error', (error) =>
      this.#fail(new StoreError('Unavailable', 'the database thread failed', { cause: error })),
    )
    worker.on('exit', () => this.#fail(new StoreError('Closed', 'the store is closed')))
  }

  static async start(settings: WorkerSettings, events: DatabaseThreadEvents): Promise<DatabaseThread> {
    // The worker's file has the extension of this one: source in a checkout, compiled when built.
    const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
    // Hides the notice that node:sqlite is experimental: users cannot act on it. Passes no other flags on: a thread
    // refuses flags that concern the whole process.
    const execArgv = ['--disable-warning=ExperimentalWarning']
    const worker = new Worker(file, { workerData: settings, execArgv, name: 'store' })
    const first = await new Promise<FromWorker>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    if (first.type !== 'ready') {
      await worker.terminate()
      throw new StoreError('Unavailable', first.type === 'refused' ? first.message : 'the database thread failed')
    }
    return new DatabaseThread(worker, first, events)
  }

  call(call: PendingCall): void {
    if (this.#failure) {
      call.failed(this.#failure)
      return
    }
    if (this.#waiting.length >= maxWaitingCalls) {
      call.failed(new StoreError('Unavailable', 'too many calls wait for the database'))
      return
    }
    this.#waiting.push(call)
    this.#planFlush()
  }

  /** Removes a call that was not sent yet. False when it is too late for that. */
  withdraw(call: PendingCall): boolean {
    const at = this.#waiting.indexOf(call)
    if (at < 0) return false
    this.#waiting.splice(at, 1)
    return true
  }

  /** Finishes the waiting batches, then closes the database. */
  async close(): Promise<void> {
    while (!this.#failure && (this.#waiting.length > 0 || this.#underWay)) {
      await new Promise<void>((resolve) => {
        this.call({ make: () => ({ do: 'revision' }), answered: () => resolve(), failed: () => resolve() })
      })
    }
    if (!this.#failure) {
      this.#failure = new StoreError('Closed', 'the store is closed')
      this.#worker.postMessage(null satisfies ToWorker)
    }
    await this.#exited
  }

  #planFlush(): void {
    if (this.#flushPlanned || this.#underWay) return
    if (this.#waiting.every(({ deferrable }) => deferrable)) {
      this.#deferral ??= setTimeout(() => this.#flush(), deferralMs)
      return
    }
    this.#flushPlanned = true
    // Flushes in a microtask, so that other calls of the same tick share the transaction.
    queueMicrotask(() => {
      this.#flushPlanned = false
      this.#flush()
    })
  }

  #flush(): void {
    clearTimeout(this.#deferral)
    this.#deferral = undefined
    if (this.#underWay || this.#waiting.length === 0 || this.#failure) return
    const packer = new Packer()
    const calls: DatabaseCall[] = []
    let bytes = 0
    while (calls.length < this.#waiting.length && calls.length < maxBatchCalls && bytes < maxBatchBytes) {
      const { make, value } = this.#waiting[calls.length] as PendingCall
      calls.push(make(value ? packer.add(value) : noValue))
      bytes += (value ?? noBytes).length
    }
    this.#underWay = this.#waiting.splice(0, calls.length)
    const values = packer.finish()
    this.#worker.postMessage({ calls, values } satisfies ToWorker, values)
  }

  #settle(answers: readonly DatabaseAnswer[], values: Values): void {
    const batch = this.#underWay ?? []
    this.#underWay = undefined
    batch.forEach((call, i) => call.answered(answers[i] as DatabaseAnswer, values))
    this.#events.afterBatch()
    this.#planFlush()
  }

  #fail(error: StoreError): void {
    clearTimeout(this.#deferral)
    const isNews = this.#failure === undefined
    this.#failure ??= error
    const lost = [...(this.#underWay ?? []), ...this.#waiting]
    this.#underWay = undefined
    this.#waiting = []
    for (const call of lost) call.failed(this.#failure)
    if (isNews) this.#events.onLost(error)
  }
}
