// The usage of a logical cluster's pods, from the metrics.k8s.io API of their member. It is read for a whole namespace
// at a time, and kept for a while.
import { LRUCache } from 'lru-cache'
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import { abortable, type Clock } from '#async/index.ts'
import { downstreamNamespace } from '#crds/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { memberUnavailable, type MemberConnection, type MemberConnections } from './member-connections.ts'

/** The time for which usage is kept: a metrics server measures every 15 s. */
const keptMs = 15_000
/** The time for which a failure is kept, so that a member that does not respond does not delay each request. */
const failureKeptMs = 5000
const timeoutMs = 10_000
const [mostNamespaces, mostPods] = [5000, 200_000]
/** The bounds of a member's response, which is kept. No namespace, pod or container has more. */
const [mostPodsOfNamespace, mostContainers, mostResources] = [20_000, 100, 16]

/** One pod, as its member measured it. */
export interface PodUsage {
  /** RFC 3339; the end of the window. */
  readonly timestamp: string
  /** A Go duration, such as `15.2s`. */
  readonly window: string
  readonly containers: readonly ContainerUsage[]
}

export interface ContainerUsage {
  readonly name: string
  /** A ResourceList. */
  readonly usage: Readonly<Record<string, string>>
}

export interface MemberMetrics {
  /** True if a member that may run workloads of this logical cluster serves metrics. Makes no request. */
  areServedIn(cluster: LogicalCluster): boolean
  /**
   * The usage of the pods of one namespace of a logical cluster in one member, by name of the pod, at most 15 s old.
   * Pods that are not measured yet are absent. Rejects with ServiceUnavailable, which names the member, and with
   * signal.reason.
   */
  usageIn(place: PlaceOfPods, signal: AbortSignal): Promise<ReadonlyMap<string, PodUsage>>
}

export interface PlaceOfPods {
  readonly member: string
  readonly cluster: LogicalCluster
  /** The upstream name of the namespace. */
  readonly namespace: string
  /** Its name in the member, if it is not the usual one. */
  readonly memberNamespace?: string | undefined
}

interface Kept {
  readonly startedAt: number
  readonly usage: Promise<ReadonlyMap<string, PodUsage>>
  failed?: true
}

/** Reads metrics from these members. Keeps the metrics of at most 5,000 namespaces and some 200,000 pods. */
export function createMemberMetrics({
  members,
  clock,
}: {
  readonly members: Pick<MemberConnections, 'byName' | 'haveMetrics'>
  readonly clock: Pick<Clock, 'monotonic'>
}): MemberMetrics {
  const kept = new LRUCache<string, Kept>({ max: mostNamespaces, maxSize: mostPods, ttl: 0 })

  const read = ({
    member,
    cluster,
    namespace,
    memberNamespace,
  }: PlaceOfPods): Promise<ReadonlyMap<string, PodUsage>> => {
    const downstream = memberNamespace ?? downstreamNamespace(cluster.id, namespace)
    const key = `${member}/${downstream}`
    const known = kept.get(key)
    const now = clock.monotonic()
    if (known !== undefined && now - known.startedAt < (known.failed ? failureKeptMs : keptMs)) return known.usage
    // The read does not end with the signal of this request, because other requests wait for the same response.
    const usage = readUsage(members, member, downstream, AbortSignal.timeout(timeoutMs))
    const entry: Kept = { startedAt: now, usage }
    kept.set(key, entry, { size: 1 })
    usage.then(
      ({ size }) => {
        if (kept.peek(key) === entry) kept.set(key, entry, { size: 1 + size })
      },
      () => void (entry.failed = true),
    )
    return usage
  }

  return {
    areServedIn: ({ labels }) => members.haveMetrics(labels),
    usageIn: (place, signal) => abortable(read(place), signal),
  }
}

async function readUsage(
  members: Pick<MemberConnections, 'byName'>,
  name: string,
  namespace: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PodUsage>> {
  const member = await members.byName(name, signal)
  try {
    const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${encodeURIComponent(namespace)}/pods`
    const list = await member.client.raw(path, { signal })
    return usageOf(isJsonObject(list) ? list['items'] : undefined)
  } catch (error) {
    throw metricsUnavailable(member, error)
  }
}

function metricsUnavailable({ name }: Pick<MemberConnection, 'name'>, error: unknown): Error {
  if (isStatusError(error, 'NotFound'))
    return serviceUnavailable(
      `member cluster "${name}" has no metrics: its administrator has to install a metrics server there`,
      error,
    )
  if (isStatusError(error, 'Forbidden'))
    return serviceUnavailable(`member cluster "${name}" does not let kcp do this yet: it has to be joined again`, error)
  if (isStatusError(error) && error.code === 503)
    return serviceUnavailable(`the metrics of member cluster "${name}" can't be read now`, error)
  return memberUnavailable(name, error)
}

/** The usage by name of the pod. Items that are not PodMetrics are left out. */
function usageOf(items: unknown): ReadonlyMap<string, PodUsage> {
  const found = new Map<string, PodUsage>()
  for (const item of Array.isArray(items) ? (items as unknown[]).slice(0, mostPodsOfNamespace) : []) {
    if (!isJsonObject(item) || !isJsonObject(item['metadata'])) continue
    const { name } = item['metadata']
    const { timestamp, window, containers } = item
    if (!isName(name) || !isAmount(timestamp) || !Array.isArray(containers)) continue
    found.set(name, {
      timestamp,
      window: isAmount(window) ? window : '0s',
      containers: containers.slice(0, mostContainers).filter(isJsonObject).flatMap(containerUsage),
    })
  }
  return found
}

function containerUsage({ name, usage }: JsonObject): ContainerUsage[] {
  if (!isName(name) || !isJsonObject(usage)) return []
  const amounts = Object.entries(usage).slice(0, mostResources)
  const kept = amounts.filter((pair): pair is [string, string] => isName(pair[0]) && isAmount(pair[1]))
  return [{ name, usage: Object.fromEntries(kept) }]
}

/** True for a text that is not longer than a name or the name of a resource may be. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 317
}

/** True for a text that is short enough for a quantity, a duration or a time. */
function isAmount(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 64
}
