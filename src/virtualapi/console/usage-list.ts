// The rows of usage of the last day, by logical cluster. All sessions share what was read.
import { forbidden, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import { hourMs, hourOf, logicalClusters, mergeUsageRows, type UsageHistory, type UsageRow } from '#crds/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

type RowsById = ReadonlyMap<string, readonly UsageRow[]>

const shownHours = 24
/** Rows are saved every minute. What was read serves for half of that, or for twenty times as long as it took. */
const [minFreshMs, freshFactor] = [30_000, 20]
const maxMs = 60_000

export class UsageList implements Disposable {
  readonly #history: Pick<UsageHistory, 'since'> | undefined
  readonly #clock: Clock
  #last: Promise<RowsById> | undefined
  #forgets: NodeJS.Timeout | undefined

  constructor({
    history,
    clock,
  }: {
    readonly history: Pick<UsageHistory, 'since'> | undefined
    readonly clock: Clock
  }) {
    this.#history = history
    this.#clock = clock
  }

  /**
   * The rows of a logical cluster, by hour; none if the installation keeps none. `cluster` is undefined if the session may
   * not see the one that it asks for: 403, whether it exists or not.
   */
  async of(
    name: string,
    cluster: LogicalCluster | undefined,
  ): Promise<{ readonly hours: number; readonly rows: readonly UsageRow[] }> {
    if (cluster === undefined) throw forbidden(logicalClusters, name, 'this session may not see its usage')
    return { hours: shownHours, rows: (await this.#all()).get(cluster.id) ?? [] }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#forgets)
  }

  #all(): Promise<RowsById> {
    if (this.#history === undefined) return Promise.resolve(new Map())
    this.#last ??= this.#read(this.#history)
    return this.#last
  }

  async #read(history: Pick<UsageHistory, 'since'>): Promise<RowsById> {
    const began = this.#clock.monotonic()
    try {
      const from = hourOf(this.#clock.now() - (shownHours - 1) * hourMs)
      const rows = mergeUsageRows(await history.since(from, AbortSignal.timeout(maxMs)))
      const byId = Map.groupBy(rows, ({ id }) => id)
      // A timer, because the rows of many logical clusters take memory that nobody may ask for again.
      this.#forgetIn(Math.max(minFreshMs, freshFactor * (this.#clock.monotonic() - began)))
      return byId
    } catch (error) {
      this.#last = undefined
      // The error of the host names what tenants need not know.
      throw serviceUnavailable('the rows of usage cannot be read now', error)
    }
  }

  #forgetIn(ms: number): void {
    this.#forgets = setTimeout(() => (this.#last = undefined), ms).unref()
  }
}
