// The requests that wait for an offload thread: one queue per logical cluster, served round robin, with bounds.
import { tooManyRequests } from '#apimachinery/status/index.ts'
import type { Job } from './job.ts'

/** Bounds of the queue of one logical cluster and of all queues together; a job above them is refused with 429. */
const maxWaiting = { jobs: 64, bytes: 16 * 1024 * 1024, allJobs: 1024, allBytes: 128 * 1024 * 1024 }

export class JobQueue {
  /** The jobs by logical cluster, in the order in which the logical clusters are served next. */
  readonly #queues = new Map<string, Job[]>()
  #jobs = 0
  #bytes = 0

  /** Logical clusters with waiting jobs, the next one first. */
  get flows(): readonly string[] {
    return [...this.#queues.keys()]
  }

  /** Adds a job. Throws 429 with Retry-After above the bounds. */
  add(job: Job): void {
    const queue = this.#queues.get(job.flow) ?? []
    const queued = queue.reduce((sum, { bytes }) => sum + bytes, 0)
    const isFull =
      queue.length >= maxWaiting.jobs ||
      (queue.length > 0 && queued + job.bytes > maxWaiting.bytes) ||
      this.#jobs >= maxWaiting.allJobs ||
      this.#bytes + job.bytes > maxWaiting.allBytes
    if (isFull) throw tooManyRequests('too many requests about large objects are waiting, please try again later')
    this.#queues.set(job.flow, queue)
    queue.push(job)
    this.#count(1, job.bytes)
  }

  /** Puts a job that has waited already at the front of its queue; bounds do not apply. */
  putBack(job: Job): void {
    this.#queues.set(job.flow, [job, ...(this.#queues.get(job.flow) ?? [])])
    this.#count(1, job.bytes)
  }

  /** The next job of a logical cluster, without taking it; undefined if no job waits. */
  peek(flow: string): Job | undefined {
    return this.#queues.get(flow)?.[0]
  }

  /** Takes the next job of a logical cluster, which is then served last; undefined if no job waits. */
  take(flow: string): Job | undefined {
    const queue = this.#queues.get(flow)
    const job = queue?.shift()
    this.#queues.delete(flow)
    if (queue !== undefined && queue.length > 0) this.#queues.set(flow, queue)
    if (job !== undefined) this.#count(-1, -job.bytes)
    return job
  }

  /** Removes a job; false if it does not wait here. */
  remove(job: Job): boolean {
    const queue = this.#queues.get(job.flow) ?? []
    const at = queue.indexOf(job)
    if (at < 0) return false
    queue.splice(at, 1)
    if (queue.length === 0) this.#queues.delete(job.flow)
    this.#count(-1, -job.bytes)
    return true
  }

  /** Takes all jobs. */
  clear(): Job[] {
    const jobs = [...this.#queues.values()].flat()
    this.#queues.clear()
    this.#jobs = 0
    this.#bytes = 0
    return jobs
  }

  #count(jobs: number, bytes: number): void {
    this.#jobs += jobs
    this.#bytes += bytes
  }
}
