// Writes one condition of those LogicalClusters that it concerns, of which only the server can know.
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  findCondition,
  logicalClusters,
  setCondition,
  type ConditionUpdate,
  type LogicalCluster as LogicalClusterObject,
} from '#crds/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'

export interface ConditionReportsOptions {
  readonly directory: ClusterDirectory
  /** The type of the condition. */
  readonly type: string
  readonly fieldManager: string
  /** The fields of the LogicalCluster that the condition is about; undefined if it does not concern it. */
  readonly subjectOf: (cluster: LogicalCluster) => unknown
  /** True: also written when the subject changes, and when this process gains the logical cluster. */
  readonly followsSubject: boolean
  /** The condition as it should be; undefined: the LogicalCluster has none. */
  readonly conditionOf: (cluster: LogicalCluster) => ConditionUpdate | undefined
  /** The API with the LogicalClusters; undefined before the server follows it. */
  readonly client: () => Pick<KubeClient, 'tryGet' | 'patch'> | undefined
  /** Absent: all logical clusters are of this process. */
  readonly ownership?: ClusterOwnership
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two writes for one logical cluster. Default 5 s: requests of strangers cause some. */
  readonly everyMs?: number
}

const defaultEveryMs = 5000
/** Logical clusters that are written at a time: at the start of a server all that are concerned may be looked at. */
const maxAtATime = 4
/** The longest message: errors name parts of the configuration. */
export const maxMessage = 4096

/** Each change is written once; many changes of one logical cluster become one write in five seconds. */
export class ConditionReports implements Disposable {
  readonly #options: ConditionReportsOptions
  readonly #waiting = new Set<ClusterId>()
  /** Logical clusters that were written a short time ago; true: again when the time is over. */
  readonly #resting = new Map<ClusterId, { readonly timer: NodeJS.Timeout; isDue: boolean }>()
  readonly #ends: (() => void)[]
  readonly #life = new AbortController()
  #running = 0

  constructor(options: ConditionReportsOptions) {
    this.#options = options
    const { directory, ownership, subjectOf, followsSubject } = options
    const gained = (isGained: (id: ClusterId) => boolean): void => {
      for (const cluster of directory.all()) if (isGained(cluster.id)) this.changed(cluster)
    }
    this.#ends = !followsSubject
      ? []
      : [
          directory.onChange(({ before, after }) => {
            if (after !== undefined && (before && subjectOf(before)) !== subjectOf(after)) this.changed(after)
          }),
          ...(ownership ? [ownership.follow({ gained, lost: () => undefined })] : []),
        ]
  }

  /** The condition of the logical cluster may have changed. Does nothing if it does not concern the logical cluster. */
  changed(cluster: LogicalCluster): void {
    const { id } = cluster
    if (this.#options.subjectOf(cluster) === undefined || this.#life.signal.aborted) return
    const resting = this.#resting.get(id)
    if (resting !== undefined) {
      resting.isDue = true
      return
    }
    this.#waiting.add(id)
    this.#next()
  }

  [Symbol.dispose](): void {
    this.#life.abort(new Error('the server is shutting down'))
    for (const end of this.#ends) end()
    for (const { timer } of this.#resting.values()) clearTimeout(timer)
    this.#waiting.clear()
  }

  #next(): void {
    for (const id of this.#waiting) {
      if (this.#running >= maxAtATime) return
      this.#waiting.delete(id)
      this.#running += 1
      this.#rest(id)
      void this.#report(id).finally(() => {
        this.#running -= 1
        this.#next()
      })
    }
  }

  #rest(id: ClusterId): void {
    const over = (): void => {
      const isDue = this.#resting.get(id)?.isDue === true
      this.#resting.delete(id)
      if (!isDue) return
      this.#waiting.add(id)
      this.#next()
    }
    const timer = setTimeout(over, this.#options.everyMs ?? defaultEveryMs).unref()
    this.#resting.set(id, { timer, isDue: false })
  }

  async #report(id: ClusterId): Promise<void> {
    const { directory, ownership, type, fieldManager, subjectOf, conditionOf, clock, log } = this.#options
    const cluster = directory.byId(id)
    const client = this.#options.client()
    if (cluster === undefined || subjectOf(cluster) === undefined || ownership?.owns(id) === false) return
    const { name, uid } = cluster
    try {
      if (client === undefined) throw new Error('the API with the LogicalClusters is not followed yet')
      const { signal } = this.#life
      const object = await client.tryGet<LogicalClusterObject>(logicalClusters, { name }, { signal })
      if (object?.metadata.uid !== uid) return
      const condition = conditionOf(cluster)
      const before = findCondition(object, type)
      const update = condition && { ...condition, observedGeneration: object.metadata.generation ?? 0 }
      const [after] = update === undefined ? [] : setCondition(before && [before], update, timestamp(clock.now()))
      if (after === before) return
      const { apiVersion, kind } = object
      // The uid is a precondition: a LogicalCluster of the same name may have taken its place.
      const body = {
        apiVersion,
        kind,
        metadata: { name, uid },
        status: { conditions: after === undefined ? [] : [after] },
      }
      const options = { subresource: 'status', fieldManager, force: true, signal }
      await client.patch(logicalClusters, { name }, 'apply', body, options)
    } catch (error) {
      if (this.#life.signal.aborted || isStatusError(error, 'NotFound') || isStatusError(error, 'Conflict')) return
      log.warn('a condition was not written', { cluster: name, condition: type, error })
      const resting = this.#resting.get(id)
      if (resting !== undefined) resting.isDue = true
    }
  }
}
