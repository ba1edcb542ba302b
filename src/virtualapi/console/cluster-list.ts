// The logical clusters that a session may see, with their state and load.
import { LRUCache } from 'lru-cache'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  asleepMessage,
  auditDelivered,
  findCondition,
  logicalClusters,
  type ClusterSleep,
  type ClusterSleepStatus,
  type ClusterUsage,
  type LogicalCluster as LogicalClusterObject,
} from '#crds/index.ts'
import type { ClusterLoad } from '#store/watch-cache/index.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import type { Session } from './session.ts'
import type { SessionUsers } from './session-users.ts'

/** A logical cluster as GET /console/api/clusters shows it. */
export interface ShownCluster {
  readonly name: string
  readonly id: string
  readonly phase: 'Ready' | 'NotReady' | 'Pending' | 'Deleting'
  readonly ready: boolean
  readonly reason: string
  readonly message: string
  readonly created: string
  /** Since when and why it is asleep, and what wakes it; absent while it is awake. */
  readonly asleep?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Name of its parent; absent if it has none. */
  readonly parent?: string
  /** Whether its objects are in the memory of the process that answers. */
  readonly loaded: boolean
  /** Its load in that process; absent if it is not in memory. */
  readonly usage?: { readonly objects: number; readonly bytes: number; readonly watches: number }
  /** spec.limits and status.usage; absent without limits. */
  readonly limits?: Readonly<Record<string, string | number>>
  readonly used?: DeepReadonly<ClusterUsage>
  /** Which limits are near or reached; absent: none. */
  readonly near?: string
  /** Its rules of sleep, and what they have led to; absent without rules. */
  readonly sleep?: DeepReadonly<ClusterSleep & Omit<ClusterSleepStatus, 'orders' | 'writtenDuring'>>
  readonly audit?: ShownAudit
}

interface ShownAudit {
  /** Whether its users read it at path /audit. */
  readonly readable: boolean
  readonly hasWebhook: boolean
  /** Why its webhook fails; absent while it delivers. */
  readonly problem?: string
}

type Objects = ReadonlyMap<string, DeepReadonly<LogicalClusterObject>>

/** A list of the LogicalClusters serves all sessions for two seconds, or for ten times as long as it took. */
const [minFreshMs, freshFactor] = [2000, 10]
/** How long a read of LogicalClusters may take, milliseconds, and how many single ones are kept. */
const [maxMs, maxSingle] = [60_000, 5000]

export class ClusterList {
  readonly #dependencies: Pick<ServerDependencies, 'directory' | 'watchCache' | 'clock'>
  readonly #client: KubeClient
  readonly #users: SessionUsers
  /** LogicalClusters that sessions of one logical cluster ask for again and again. */
  readonly #single = new LRUCache<string, Promise<Objects>>({ max: maxSingle, ttl: minFreshMs })
  #last: { readonly objects: Promise<Objects>; until: number } | undefined

  constructor(
    dependencies: Pick<ServerDependencies, 'directory' | 'watchCache' | 'clock'>,
    client: KubeClient,
    users: SessionUsers,
  ) {
    this.#dependencies = dependencies
    this.#client = client
    this.#users = users
  }

  /** The logical clusters that the user may see, by name. */
  async seenBy(
    { session, user }: { readonly session: Session; readonly user: UserInfo },
    signal: AbortSignal,
  ): Promise<{ readonly items: readonly ShownCluster[] }> {
    const seen = await this.#seen(session, user, signal)
    const [first, ...others] = seen
    if (first === undefined) return { items: [] }
    const objects = others.length === 0 ? await this.#one(first) : await this.#all()
    const loads = new Map<ClusterId, ClusterLoad>()
    for (const load of this.#dependencies.watchCache.loads()) loads.set(load.cluster, load)
    const items = seen.map((cluster) => shownCluster(cluster, objects.get(cluster.name), loads.get(cluster.id)))
    return { items: items.sort((a, b) => (a.name < b.name ? -1 : 1)) }
  }

  /** The logical cluster of this name, if the user may see it. */
  async find(
    name: string,
    { session, user }: { readonly session: Session; readonly user: UserInfo },
    signal: AbortSignal,
  ): Promise<LogicalCluster | undefined> {
    return (await this.#seen(session, user, signal)).find((cluster) => cluster.name === name)
  }

  async #seen({ identity }: Session, user: UserInfo, signal: AbortSignal): Promise<readonly LogicalCluster[]> {
    const { directory } = this.#dependencies
    if (identity.as === 'hostToken') return await this.#users.reachable(identity.token, user, signal)
    if (user.realm.kind !== 'cluster') return [...directory.all()]
    const own = directory.byId(user.realm.id)
    return own === undefined ? [] : [own]
  }

  async #one({ name }: LogicalCluster): Promise<Objects> {
    const known = this.#single.get(name)
    if (known !== undefined) return await known
    const signal = AbortSignal.timeout(maxMs)
    const found = this.#client
      .tryGet<LogicalClusterObject>(logicalClusters, { name }, { signal })
      .then((object) => new Map(object === undefined ? [] : [[name as string, object]]))
    this.#single.set(name, found)
    found.catch(() => this.#single.delete(name))
    return await found
  }

  async #all(): Promise<Objects> {
    const { clock } = this.#dependencies
    if (this.#last !== undefined && clock.monotonic() < this.#last.until) return await this.#last.objects
    const began = clock.monotonic()
    // Several sessions share the list, so it does not end with one of them.
    const last = { objects: this.#list(), until: Infinity }
    this.#last = last
    try {
      const objects = await last.objects
      const tookMs = clock.monotonic() - began
      last.until = clock.monotonic() + Math.max(minFreshMs, freshFactor * tookMs)
      return objects
    } catch (error) {
      this.#last = undefined
      throw error
    }
  }

  async #list(): Promise<Objects> {
    const signal = AbortSignal.timeout(maxMs)
    const { items } = await this.#client.list<LogicalClusterObject>(logicalClusters, { signal })
    return new Map(items.map((object) => [object.metadata.name, object]))
  }
}

function shownCluster(
  { name, id, creationTimestamp, deleting, labels, parent }: LogicalCluster,
  object: DeepReadonly<LogicalClusterObject> | undefined,
  load: ClusterLoad | undefined,
): ShownCluster {
  const condition = object?.status?.conditions?.find(({ type }) => type === 'Ready')
  // The logical cluster `root` has no object, and is there as long as the server is.
  const ready = object === undefined ? !deleting : condition?.status === 'True'
  const asleep = asleepMessage(object?.status?.sleep)
  const phase = deleting ? 'Deleting' : ready ? 'Ready' : condition === undefined ? 'Pending' : 'NotReady'
  return {
    name,
    id,
    phase,
    ready,
    reason: condition?.reason ?? '',
    message: condition?.message ?? '',
    created: creationTimestamp,
    ...(asleep !== undefined && { asleep }),
    ...(labels && { labels }),
    ...(parent !== undefined && { parent }),
    loaded: load !== undefined,
    ...(load && { usage: { objects: load.objects, bytes: load.bytes, watches: load.watches } }),
    ...(object && wingsOf(object)),
  }
}

/** What is set for a logical cluster alone: limits, sleep, audit. */
function wingsOf(
  object: DeepReadonly<LogicalClusterObject>,
): Pick<ShownCluster, 'limits' | 'used' | 'near' | 'sleep' | 'audit'> {
  const { spec: { limits, sleep, audit } = {}, status: { usage, sleep: slept } = {} } = object
  const within = findCondition(object, 'WithinLimits')
  const { orders: _orders, writtenDuring: _during, ...shownSleep } = slept ?? {}
  const problem = findCondition(object, auditDelivered)?.message
  return {
    ...(limits && { limits: amountsOf(limits) }),
    ...(limits && usage && { used: usage }),
    ...(within?.status === 'False' && { near: within.message }),
    ...(sleep && { sleep: { ...sleep, ...shownSleep } }),
    ...(audit && {
      audit: {
        readable: audit.readable === true,
        hasWebhook: audit.webhook !== undefined,
        ...(audit.webhook !== undefined && problem !== undefined && { problem }),
      },
    }),
  }
}

function amountsOf(limits: object): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(limits).filter(([, value]) => typeof value === 'string' || typeof value === 'number'),
  )
}
