// Writes condition AuthenticationValid of LogicalClusters with spec.authentication: whether its issuers count, and whether
// their keys can be read. The operator removes the condition of a LogicalCluster without issuers.
import { causeText } from '#apimachinery/field/index.ts'
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
import type { IssuersState } from '#virtualapi/auth/sign-in/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'

export interface AuthenticationReportsOptions {
  readonly directory: ClusterDirectory
  readonly stateOf: (cluster: LogicalCluster) => IssuersState
  /** The API with the LogicalClusters; undefined before the server follows it. */
  readonly client: () => Pick<KubeClient, 'tryGet' | 'patch'> | undefined
  /** Absent: all logical clusters are of this process. */
  readonly ownership?: ClusterOwnership
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two writes for one logical cluster. Default 5 s: tokens of strangers cause attempts to read keys. */
  readonly everyMs?: number
}

const defaultEveryMs = 5000
/** Logical clusters that are written at a time: at the start of a server all that have issuers are looked at. */
const maxAtATime = 4
const fieldManager = 'kcp-sign-in'
/** The longest message: errors name parts of the configuration. */
const maxMessage = 4096

/** Each change is written once; many changes of one logical cluster become one write in five seconds. */
export class AuthenticationReports implements Disposable {
  readonly #options: AuthenticationReportsOptions
  readonly #waiting = new Set<ClusterId>()
  /** Logical clusters that were written a short time ago; true: again when the time is over. */
  readonly #resting = new Map<ClusterId, { readonly timer: NodeJS.Timeout; isDue: boolean }>()
  readonly #ends: (() => void)[]
  readonly #life = new AbortController()
  #running = 0

  constructor(options: AuthenticationReportsOptions) {
    this.#options = options
    const { directory, ownership } = options
    const gained = (isGained: (id: ClusterId) => boolean): void => {
      for (const cluster of directory.all()) if (isGained(cluster.id)) this.changed(cluster)
    }
    this.#ends = [
      directory.onChange(({ before, after }) => {
        if (after !== undefined && before?.authentication !== after.authentication) this.changed(after)
      }),
      ...(ownership ? [ownership.follow({ gained, lost: () => undefined })] : []),
    ]
  }

  /** The issuers of the logical cluster, or what is known of them, have changed. Without issuers, nothing happens. */
  changed({ id, authentication }: LogicalCluster): void {
    if (authentication === undefined || this.#life.signal.aborted) return
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
    const { directory, ownership, stateOf, client: clientOf, clock, log } = this.#options
    const cluster = directory.byId(id)
    const client = clientOf()
    if (cluster?.authentication === undefined || ownership?.owns(id) === false) return
    const { name, uid } = cluster
    try {
      if (client === undefined) throw new Error('the API with the LogicalClusters is not followed yet')
      const { signal } = this.#life
      const object = await client.tryGet<LogicalClusterObject>(logicalClusters, { name }, { signal })
      if (object?.metadata.uid !== uid) return
      const update = { ...conditionOf(stateOf(cluster)), observedGeneration: object.metadata.generation ?? 0 }
      const before = findCondition(object, update.type)
      const [condition] = setCondition(before && [before], update, timestamp(clock.now()))
      if (condition === before) return
      const { apiVersion, kind } = object
      // The uid is a precondition: a LogicalCluster of the same name may have taken its place.
      const body = { apiVersion, kind, metadata: { name, uid }, status: { conditions: [condition] } }
      const options = { subresource: 'status', fieldManager, force: true, signal }
      await client.patch(logicalClusters, { name }, 'apply', body, options)
    } catch (error) {
      if (this.#life.signal.aborted || isStatusError(error, 'NotFound') || isStatusError(error, 'Conflict')) return
      log.warn('condition AuthenticationValid was not written', { cluster: name, error })
      const resting = this.#resting.get(id)
      if (resting !== undefined) resting.isDue = true
    }
  }
}

/** The condition that says it. Pure. */
export function conditionOf({ causes, unreadable }: IssuersState): ConditionUpdate {
  const type = 'AuthenticationValid'
  if (causes.length > 0) {
    const message = `no issuer of spec.authentication counts: ${causes.map(causeText).join('; ')}`
    return { type, status: 'False', reason: 'IssuersInvalid', message: message.slice(0, maxMessage) }
  }
  if (unreadable.length > 0) {
    const message = unreadable.map(unreadableText).join('; ')
    return { type, status: 'False', reason: 'KeysUnreadable', message: message.slice(0, maxMessage) }
  }
  return { type, status: 'True', reason: 'Valid', message: 'tokens of the issuers count' }
}

function unreadableText({ url, problem, countUntil }: IssuersState['unreadable'][number]): string {
  const known =
    countUntil === undefined
      ? 'no key is known, so its tokens are refused'
      : `the keys that are known count until ${timestamp(countUntil)}`
  return `the keys of "${url}" cannot be read: ${problem}; ${known}`
}
