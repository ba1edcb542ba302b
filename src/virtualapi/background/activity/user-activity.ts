// Tells the operator that logical clusters are used, in their status: coarsely while they are awake, at once when a user
// writes into one that is asleep. A logical cluster without rules of sleep costs a request one comparison.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep, timestamp, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { logicalClusters, type ClusterSleepStatus } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { ClusterDirectory, LogicalCluster, SleepRules } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { isCounted } from './counted-requests.ts'

export interface ActivityOptions {
  readonly directory: Pick<ClusterDirectory, 'byId' | 'onChange'>
  /** The API with the LogicalClusters; undefined before the server follows it. */
  readonly client: () => KubeClient | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** What is known of a logical cluster with rules of sleep. */
interface Noted {
  /** Monotonic milliseconds of the last request that was told. */
  toldAt: number
  /** Monotonic milliseconds of the last write. */
  writtenAt: number
}

type Told = Pick<ClusterSleepStatus, 'lastRequestTime' | 'writtenDuring'>

/** A write so shortly before its logical cluster was found idle was on its way then, and wakes it. */
const justWrittenMs = 10_000
/** How long a failed write of a status waits, milliseconds. */
const retryMs = 2000
/** How many statuses are written at a time. */
const parallel = 8

export class UserActivity implements AsyncDisposable {
  readonly #options: ActivityOptions
  /** At most as many as there are logical clusters with rules of sleep. */
  readonly #noted = new Map<ClusterId, Noted>()
  /** What is to be told, by id. */
  readonly #pending = new Map<ClusterId, Told>()
  readonly #life = new AbortController()
  readonly #unfollow: () => void
  #writing: Promise<void> = Promise.resolve()
  #isWriting = false

  constructor(options: ActivityOptions) {
    this.#options = options
    this.#unfollow = options.directory.onChange((change) => this.#follow(change))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unfollow()
    this.#life.abort(new DOMException('the server is shutting down', 'AbortError'))
    await this.#writing
  }

  /** A user may do what the request asks for, in a logical cluster with rules of sleep. Quick: it only notes. */
  note({ id, sleep: rules }: LogicalCluster, info: RequestInfo, user: UserInfo): void {
    const counted = rules && isCounted(info, user, rules)
    if (rules === undefined || counted === undefined) return
    const now = this.#options.clock.monotonic()
    const noted = this.#noted.get(id) ?? { toldAt: -Infinity, writtenAt: -Infinity }
    this.#noted.set(id, noted)
    if (counted === 'write') noted.writtenAt = now
    if (rules.asleepSince !== undefined) {
      if (counted === 'write') this.#wake(id, rules.asleepSince)
      return
    }
    if (rules.stepMs === undefined || now - noted.toldAt < rules.stepMs) return
    noted.toldAt = now
    this.#tell(id, { lastRequestTime: timestamp(this.#options.clock.now()) })
  }

  #follow({ before, after }: { before?: LogicalCluster; after?: LogicalCluster }): void {
    const [was, is] = [before?.sleep, after?.sleep]
    if (before !== undefined && is === undefined) {
      this.#noted.delete(before.id)
      this.#pending.delete(before.id)
    }
    if (after !== undefined && is !== undefined) this.#changed(after.id, was, is)
  }

  #changed(id: ClusterId, was: SleepRules | undefined, { asleepSince, isIdle }: SleepRules): void {
    const noted = this.#noted.get(id)
    if (noted === undefined) return
    if (asleepSince === undefined && was?.asleepSince !== undefined) noted.toldAt = -Infinity
    if (asleepSince === undefined || was?.asleepSince !== undefined || isIdle !== true) return
    if (this.#options.clock.monotonic() - noted.writtenAt < justWrittenMs) this.#wake(id, asleepSince)
  }

  /** A user writes while the logical cluster is asleep. Once is enough. */
  #wake(id: ClusterId, asleepSince: string): void {
    if (this.#pending.get(id)?.writtenDuring !== asleepSince) this.#tell(id, { writtenDuring: asleepSince })
  }

  #tell(id: ClusterId, told: Told): void {
    this.#pending.set(id, { ...this.#pending.get(id), ...told })
    if (this.#isWriting) return
    this.#isWriting = true
    this.#writing = this.#writeAll().finally(() => (this.#isWriting = false))
  }

  async #writeAll(): Promise<void> {
    const { signal } = this.#life
    while (this.#pending.size > 0 && !signal.aborted) {
      const batch = [...this.#pending].slice(0, parallel)
      const results = await Promise.all(batch.map(([id, told]) => this.#write(id, told)))
      if (results.includes(false)) await sleep(retryMs, signal, { unref: true }).catch(() => undefined)
    }
  }

  /** False if it has to be tried again. */
  async #write(id: ClusterId, told: Told): Promise<boolean> {
    const { directory, client: clientOf, log } = this.#options
    const [cluster, client] = [directory.byId(id), clientOf()]
    if (cluster === undefined) {
      this.#pending.delete(id)
      return true
    }
    try {
      if (client === undefined) return false
      const patch = { metadata: { uid: cluster.uid }, status: { sleep: told } }
      const options = { subresource: 'status', signal: this.#life.signal } as const
      await client.patch(logicalClusters, { name: cluster.name }, 'merge', patch, options)
    } catch (error) {
      if (this.#life.signal.aborted) return true
      // Deleted, or created again under its name: there is nobody to tell.
      if (!isStatusError(error) || (error.code !== 404 && error.code !== 409)) {
        log.warn('that a logical cluster is used was not written; will be tried again', {
          cluster: cluster.name,
          error,
        })
        this.#putLast(id)
        return false
      }
    }
    if (this.#pending.get(id) === told) this.#pending.delete(id)
    return true
  }

  /** The others come first the next time. */
  #putLast(id: ClusterId): void {
    const told = this.#pending.get(id)
    if (told !== undefined && this.#pending.delete(id)) this.#pending.set(id, told)
  }
}
