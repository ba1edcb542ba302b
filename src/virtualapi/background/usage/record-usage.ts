// Counts what each logical cluster uses in an hour, for bills: requests, watches, objects, bytes. Objects of logical
// clusters that are not in memory do not change, so their last known size counts; one that was never read is read once.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { sleep, type Clock } from '#async/index.ts'
import { partsByHour, UsageBook, type UsageHistory } from '#crds/index.ts'
import { rankedGauges, type Counter, type Logger, type Measured, type Metrics } from '#telemetry/index.ts'
import type { Metered, UsageMeter } from '#virtualapi/flowcontrol/usage-meter.ts'
import type { KeptObjects } from '#virtualapi/hierarchy/subtree-budgets.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterFilter } from '#virtualapi/request/ownership.ts'

export interface RecordOptions {
  readonly meter: UsageMeter
  readonly directory: Pick<ClusterDirectory, 'all' | 'byId'>
  readonly objects: KeptObjects
  readonly history: UsageHistory
  /** Selects the logical clusters that this process counts for. */
  readonly owns: ClusterFilter
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'counter' | 'gauge'>
  /** Milliseconds between two counts, each of which is saved: what a crash loses. */
  readonly everyMs: number
}

interface Size {
  readonly objects: number
  readonly bytes: number
}

/** The measures of metrics. */
type Measure = 'objects' | 'bytes' | 'watches' | 'requests'

/** How many logical clusters are read in one count, to learn their size. */
const mostReads = 200

export class UsageRecorder {
  readonly #options: RecordOptions
  readonly #book: UsageBook
  /** The last known size of logical clusters with objects. */
  readonly #sizes = new Map<ClusterId, Size>()
  /** Seconds that do not count yet, because the size is not known. */
  readonly #unknown = new Map<ClusterId, number>()
  #countedAt: number
  /** Requests per second between the last two counts. */
  #rates: ReadonlyMap<ClusterId, number> = new Map()
  readonly #allRequests: Counter
  #metered = new Map<ClusterId, Metered>()

  constructor(options: RecordOptions) {
    this.#options = options
    this.#book = new UsageBook(options.history)
    this.#countedAt = options.clock.now()
    this.#allRequests = this.#register(options.metrics)
  }

  /** An object has changed, whether its logical cluster is in memory or not. Must be quick. */
  touched(id: ClusterId): void {
    if (this.#options.objects.inMemory(id) === undefined) this.#sizes.delete(id)
  }

  /** Counts until the signal aborts, and once more then. */
  async run(signal: AbortSignal): Promise<void> {
    const { everyMs, log } = this.#options
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await sleep(everyMs, signal, { unref: true }).catch(() => undefined)
      try {
        await this.count(isOver() ? AbortSignal.timeout(lastCountMs) : signal)
      } catch (error) {
        if (!isOver()) log.warn('the usage of logical clusters was not saved; will be tried again', { error })
      }
    }
  }

  /** Counts what was used since the last time, and saves it. */
  async count(signal: AbortSignal): Promise<void> {
    const { clock, meter } = this.#options
    const now = clock.now()
    this.#takeMetered(meter.take(), (now - this.#countedAt) / 1000)
    for (const { atMs, seconds } of partsByHour(this.#countedAt, now)) {
      await this.#book.open(atMs, signal)
      this.#countSizes(seconds)
      this.#countedAt = atMs + seconds * 1000
    }
    await this.#book.open(now, signal)
    this.#countMetered()
    await this.#learn(signal)
    await this.#book.save(signal)
  }

  #takeMetered(taken: ReadonlyMap<ClusterId, Metered>, seconds: number): void {
    const rates = new Map<ClusterId, number>()
    for (const [id, more] of taken) {
      addTo(this.#metered, id, more)
      this.#allRequests.inc({}, more.requests)
      if (seconds > 0) rates.set(id, more.requests / seconds)
    }
    this.#rates = rates
  }

  /** Registers the metrics of usage: bounded in number, and counted by scrapes only. */
  #register(metrics: RecordOptions['metrics']): Counter {
    rankedGauges<Measure>(
      metrics,
      {
        objects: { name: 'kcp_usage_objects', help: 'Stored objects' },
        bytes: { name: 'kcp_usage_object_bytes', help: 'Bytes of stored objects' },
        watches: { name: 'kcp_usage_watches', help: 'Open watches of users' },
        requests: { name: 'kcp_usage_requests_per_second', help: 'Requests of users a second, in the last count' },
      },
      () => this.#measured(),
    )
    metrics.gauge({
      name: 'kcp_usage_uncounted_logical_clusters',
      help: 'Logical clusters whose objects are not counted yet; they are missing in kcp_usage_objects',
      read: () => this.#uncounted(),
    })
    return metrics.counter({ name: 'kcp_usage_requests_total', help: 'Requests of users, counted every minute' })
  }

  *#measured(): Generator<Measured<Measure>> {
    const { directory, owns, meter } = this.#options
    for (const { id, name } of directory.all()) {
      if (!owns(id)) continue
      const { objects, bytes } = this.#sizeOf(id) ?? { objects: 0, bytes: 0 }
      const requests = this.#rates.get(id) ?? 0
      yield { name, amounts: { objects, bytes, watches: meter.watchesOf(id), requests } }
    }
  }

  #uncounted(): number {
    const { directory, owns } = this.#options
    let count = 0
    for (const { id } of directory.all()) if (owns(id) && this.#sizeOf(id) === undefined) count++
    return count
  }

  #countMetered(): void {
    for (const [id, metered] of this.#metered) {
      const cluster = this.#options.directory.byId(id)
      if (cluster !== undefined) this.#book.add({ id, name: cluster.name, ...metered })
    }
    this.#metered = new Map()
  }

  #countSizes(seconds: number): void {
    const { directory, owns } = this.#options
    for (const cluster of directory.all()) {
      if (!owns(cluster.id)) {
        this.#sizes.delete(cluster.id)
        this.#unknown.delete(cluster.id)
        continue
      }
      const size = this.#sizeOf(cluster.id)
      if (size === undefined) this.#unknown.set(cluster.id, (this.#unknown.get(cluster.id) ?? 0) + seconds)
      else this.#addSize(cluster, size, seconds)
    }
    for (const id of this.#sizes.keys()) if (directory.byId(id) === undefined) this.#sizes.delete(id)
    for (const id of this.#unknown.keys()) if (directory.byId(id) === undefined) this.#unknown.delete(id)
  }

  #addSize({ id, name }: LogicalCluster, { objects, bytes }: Size, seconds: number): void {
    if (objects > 0) this.#book.add({ id, name, objectSeconds: objects * seconds, byteSeconds: bytes * seconds })
  }

  #sizeOf(id: ClusterId): Size | undefined {
    const now = this.#options.objects.inMemory(id)
    if (now === undefined) return this.#sizes.get(id)
    return this.#keep(id, now.size, now.bytes)
  }

  #keep(id: ClusterId, objects: number, bytes: number): Size {
    const before = this.#sizes.get(id)
    if (before?.objects === objects && before.bytes === bytes) return before
    const size = { objects, bytes }
    this.#sizes.set(id, size)
    return size
  }

  /** Reads some logical clusters whose size is not known; the seconds that they have waited for it count then. */
  async #learn(signal: AbortSignal): Promise<void> {
    let reads = 0
    for (const [id, seconds] of this.#unknown) {
      if (reads++ >= mostReads || signal.aborted) return
      const cluster = this.#options.directory.byId(id)
      this.#unknown.delete(id)
      if (cluster === undefined) continue
      const { size, bytes } = await this.#options.objects.read(id)
      this.#addSize(cluster, this.#keep(id, size, bytes), seconds)
    }
  }
}

/** How long the last count may take while the process ends, milliseconds. */
const lastCountMs = 2000

function addTo(sums: Map<ClusterId, Metered>, id: ClusterId, { requests, watchSeconds }: Metered): void {
  const sum = sums.get(id) ?? { requests: 0, watchSeconds: 0 }
  sum.requests += requests
  sum.watchSeconds += watchSeconds
  sums.set(id, sum)
}
