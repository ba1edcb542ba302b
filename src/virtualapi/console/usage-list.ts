// The rows of usage of the last day, of the logical clusters that sessions ask for. One read at a time serves all that
// wait for it, and reads take a bounded part of the time, however many sessions ask.
import { LRUCache } from 'lru-cache'
import { forbidden, serviceUnavailable } from '#apimachinery/status/index.ts'
import { sleep, type Clock } from '#async/index.ts'
import { hourMs, hourOf, logicalClusters, mergeUsageRows, type UsageHistory, type UsageRow } from '#crds/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

type Rows = readonly UsageRow[]
type History = Pick<UsageHistory, 'of'>

const shownHours = 24
/** Rows are saved every minute: what was read of a logical cluster serves for half of that, and of how many it is kept. */
const [freshMs, maxKept] = [30_000, 500]
/** After a read, the next one waits for four times as long as it took. */
const [pauseFactor, maxPauseMs] = [4, 30_000]
const maxMs = 60_000

export class UsageList implements Disposable {
  readonly #history: History | undefined
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #kept = new LRUCache<string, Rows>({ max: maxKept, ttl: freshMs })
  /** By id of the logical cluster. */
  readonly #waiting = new Map<string, PromiseWithResolvers<Rows>>()
  readonly #life = new AbortController()
  #isReading = false

  constructor({
    history,
    clock,
  }: {
    readonly history: History | undefined
    readonly clock: Pick<Clock, 'now' | 'monotonic'>
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
    cluster: Pick<LogicalCluster, 'id'> | undefined,
  ): Promise<{ readonly hours: number; readonly rows: Rows }> {
    if (cluster === undefined) throw forbidden(logicalClusters, name, 'this session may not see its usage')
    if (this.#history === undefined) return { hours: shownHours, rows: [] }
    const rows = this.#kept.get(cluster.id) ?? (await this.#next(this.#history, cluster.id))
    return { hours: shownHours, rows }
  }

  [Symbol.dispose](): void {
    this.#life.abort(new DOMException('the server is shutting down', 'AbortError'))
  }

  /** The rows of a logical cluster, from the read that has begun with it or from the next one. */
  #next(history: History, id: string): Promise<Rows> {
    const waiting = this.#waiting.get(id) ?? Promise.withResolvers<Rows>()
    this.#waiting.set(id, waiting)
    if (!this.#isReading) void this.#readAll(history)
    return waiting.promise
  }

  async #readAll(history: History): Promise<void> {
    this.#isReading = true
    while (this.#waiting.size > 0) {
      const began = this.#clock.monotonic()
      const wanted = [...this.#waiting].slice(0, maxKept)
      try {
        const byId = await this.#read(history, new Set(wanted.map(([id]) => id)))
        for (const [id, { resolve }] of wanted) {
          const rows = byId.get(id) ?? []
          this.#kept.set(id, rows)
          resolve(rows)
        }
      } catch (error) {
        // The error of the host names what tenants need not know.
        for (const [, { reject }] of wanted) reject(serviceUnavailable('the rows of usage cannot be read now', error))
      }
      for (const [id] of wanted) this.#waiting.delete(id)
      const pauseMs = Math.min(maxPauseMs, pauseFactor * (this.#clock.monotonic() - began))
      // A server that shuts down reads no more: reads fail at once then.
      await sleep(pauseMs, this.#life.signal, { unref: true }).catch(() => undefined)
    }
    this.#isReading = false
  }

  async #read(history: History, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, Rows>> {
    const { signal } = this.#life
    signal.throwIfAborted()
    const from = hourOf(this.#clock.now() - (shownHours - 1) * hourMs)
    const rows = await history.of(ids, from, AbortSignal.any([signal, AbortSignal.timeout(maxMs)]))
    return Map.groupBy(mergeUsageRows(rows), ({ id }) => id)
  }
}
