// Writes status.usage of the logical clusters that have limits: at a bounded rate, and only after a meaningful change.
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { isUsageStep, logicalClusters, servedUsage, type ClusterUsage } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { budgetDimensions, type SubtreeBudgets } from '#virtualapi/hierarchy/subtree-budgets.ts'
import type { SubtreeFlow } from '#virtualapi/hierarchy/subtree-flow.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterFilter } from '#virtualapi/request/ownership.ts'

export interface PublishOptions {
  readonly directory: ClusterDirectory
  readonly budgets: Pick<SubtreeBudgets, 'used'>
  readonly flow: Pick<SubtreeFlow, 'watchesUsed'>
  /** The API with the LogicalClusters; undefined before the server follows it. */
  readonly client: () => KubeClient | undefined
  /** Selects the logical clusters whose usage this process writes. */
  readonly owns: ClusterFilter
  readonly log: Logger
}

type Amounts = Record<(typeof servedUsage)[number], number>

/** How often usage is looked at, milliseconds. */
const everyMs = 10_000
/** How many statuses are written each time: the others follow. */
const mostWrites = 50

export class UsagePublisher implements AsyncDisposable {
  readonly #options: PublishOptions
  readonly #limited = new Set<ClusterName>()
  /** What was written last, by id. */
  readonly #written = new Map<ClusterId, Amounts>()
  readonly #stops: (() => void)[]
  readonly #life = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #isRunning = false

  constructor(options: PublishOptions) {
    this.#options = options
    const timer = setInterval(() => this.#tick(), everyMs).unref()
    this.#stops = [() => clearInterval(timer), options.directory.onChange((change) => this.#follow(change))]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) stop()
    this.#life.abort(new DOMException('the server is shutting down', 'AbortError'))
    await this.#running
  }

  #follow({ before, after }: { before?: LogicalCluster; after?: LogicalCluster }): void {
    if (before !== undefined && after?.limits === undefined) {
      this.#limited.delete(before.name)
      this.#written.delete(before.id)
    }
    if (after?.limits !== undefined) this.#limited.add(after.name)
  }

  #tick(): void {
    if (this.#isRunning || this.#limited.size === 0) return
    this.#isRunning = true
    this.#running = this.#publish()
      .catch((error: unknown) => {
        if (!this.#life.signal.aborted)
          this.#options.log.warn('the usage of logical clusters was not written', { error })
      })
      .finally(() => (this.#isRunning = false))
  }

  async #publish(): Promise<void> {
    const { directory, owns } = this.#options
    let writes = 0
    for (const name of [...this.#limited]) {
      const cluster = directory.byName(name)
      if (cluster === undefined || cluster.deleting || !owns(cluster.id)) continue
      if (writes >= mostWrites || this.#life.signal.aborted) return
      if (await this.#publishOne(cluster)) {
        writes++
        // Whatever was written comes last the next time.
        this.#limited.delete(name)
        this.#limited.add(name)
      }
    }
  }

  async #publishOne(cluster: LogicalCluster): Promise<boolean> {
    const client = this.#options.client()
    const now = await this.#usageOf(cluster)
    const before = this.#written.get(cluster.id)
    const isChanged = servedUsage.some((field) => isUsageStep(before?.[field], now[field], cluster.limits?.[field]))
    if (!isChanged || client === undefined) return false
    const { storage, ...counts } = now
    const usage: ClusterUsage = { storage: String(storage), ...counts }
    const { signal } = this.#life
    try {
      await client.patch(
        logicalClusters,
        { name: cluster.name },
        'merge',
        { metadata: { uid: cluster.uid }, status: { usage } },
        { subresource: 'status', signal },
      )
    } catch (error) {
      // Deleted, or created again under its name.
      if (isStatusError(error) && (error.code === 404 || error.code === 409)) return false
      throw error
    }
    this.#written.set(cluster.id, now)
    return true
  }

  async #usageOf({ name }: LogicalCluster): Promise<Amounts> {
    const [storage = 0, objects = 0, crds = 0] = await Promise.all(
      budgetDimensions.map((dimension) => this.#options.budgets.used(name, dimension)),
    )
    return { storage, objects, crds, watches: this.#options.flow.watchesUsed(name) }
  }
}
