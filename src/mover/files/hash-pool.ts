// Threads that hash, because hashing takes most of a mover's time, and files that are open in this process can be read
// by each of its threads.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { HashAnswer, HashJob } from './hash-jobs.ts'

export interface BlockHashes {
  readonly bytes: number
  readonly hashes: Buffer
}

interface Waiting {
  readonly job: HashJob
  readonly done: PromiseWithResolvers<BlockHashes>
}

export class HashPool implements AsyncDisposable {
  readonly #size: number
  readonly #workers: Worker[] = []
  readonly #idle: Worker[] = []
  readonly #queue: Waiting[] = []
  readonly #running = new Map<number, { readonly waiting: Waiting; readonly worker: Worker }>()
  #lastId = 0

  constructor(size = Math.max(1, Math.min(4, availableParallelism()))) {
    this.#size = size
  }

  /** Hashes of the blocks of a range that begins at a block. The file stays open until this settles. */
  hash(fd: number, offset: number, length: number): Promise<BlockHashes> {
    const waiting = { job: { id: ++this.#lastId, fd, offset, length }, done: Promise.withResolvers<BlockHashes>() }
    this.#queue.push(waiting)
    this.#next()
    return waiting.done.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.terminate()))
  }

  #next(): void {
    if (this.#queue.length === 0) return
    const worker = this.#idle.pop() ?? (this.#workers.length < this.#size ? this.#start() : undefined)
    if (worker === undefined) return
    const waiting = this.#queue.shift() as Waiting
    this.#running.set(waiting.job.id, { waiting, worker })
    worker.postMessage(waiting.job)
  }

  #start(): Worker {
    // The thread has the extension of this file: .ts in a checkout, .js when built.
    const file = new URL(import.meta.url.endsWith('.ts') ? './hash-thread.ts' : './hash-thread.js', import.meta.url)
    const worker = new Worker(file, { execArgv: ['--disable-warning=ExperimentalWarning'], name: 'hash' })
    worker.unref()
    worker.on('message', (answer: HashAnswer) => this.#settle(worker, answer))
    worker.on('error', (error: Error) => this.#lose(worker, error))
    worker.on('exit', () => this.#lose(worker, new Error('a hashing thread ended')))
    this.#workers.push(worker)
    return worker
  }

  #settle(worker: Worker, answer: HashAnswer): void {
    const waiting = this.#running.get(answer.id)?.waiting
    this.#running.delete(answer.id)
    this.#idle.push(worker)
    if ('error' in answer)
      waiting?.done.reject(Object.assign(new Error(`read: ${answer.error}`), { code: answer.error }))
    else
      waiting?.done.resolve({
        bytes: answer.bytes,
        hashes: Buffer.from(answer.hashes.buffer, answer.hashes.byteOffset, answer.hashes.byteLength),
      })
    this.#next()
  }

  #lose(worker: Worker, error: Error): void {
    for (const list of [this.#workers, this.#idle]) if (list.includes(worker)) list.splice(list.indexOf(worker), 1)
    for (const [id, { waiting, worker: its }] of this.#running) {
      if (its !== worker) continue
      this.#running.delete(id)
      waiting.done.reject(error)
    }
  }
}
