// The input of a reconcile of a MemberCluster: the member itself, other MemberClusters, and the workloads placed there.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { addAmounts, amountsOf, listOf, type Quantity } from '#apimachinery/quantity/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { workloadKinds, type MemberCluster } from '#crds/index.ts'
import { memberTimeouts } from '#client/member/index.ts'
import { membersOf, nameOf } from './placed-workloads.ts'
import type { Probe, ResourceList } from './status.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const nodes = { group: '', version: 'v1', resource: 'nodes' } as const

/** Asks the member for its uid, version, nodes, and whether it has metrics. Rejects only if the signal aborts. */
export async function probe(client: KubeClient, signal: AbortSignal): Promise<Probe> {
  const timeoutMs = memberTimeouts.probeMs
  using attempt = childSignal(signal)
  const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
  try {
    const options = { signal: attempt.signal }
    const [kubeSystem, version, list, metricsAPI] = await Promise.all([
      client.get<KubeObject>(namespaces, { name: 'kube-system' }, options),
      client.raw('/version', options),
      client.list<KubeObject>(nodes, options),
      servesMetrics(client, attempt.signal),
    ])
    const { gitVersion = '' } = version as { gitVersion?: string }
    return {
      kind: 'answered',
      uid: kubeSystem.metadata.uid ?? '',
      version: gitVersion,
      ...(metricsAPI === undefined ? {} : { metricsAPI }),
      nodes: { ready: list.items.filter(isReady).length, total: list.items.length },
      ...nodeTotals(list.items.filter((node) => isReady(node) && !isUnschedulable(node))),
      revision: list.metadata.resourceVersion ?? '',
    }
  } catch (error) {
    if (signal.aborted) throw error
    const message = error instanceof Error ? error.message : String(error)
    const refused = isStatusError(error) && (error.code === 401 || error.code === 403)
    return { kind: refused ? 'refused' : 'unreachable', message }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Whether the member has an APIService for metrics.k8s.io/v1beta1. Its own API server answers, so a metrics server that
 * is down does not matter. Undefined if it does not tell.
 */
async function servesMetrics(client: KubeClient, signal: AbortSignal): Promise<boolean | undefined> {
  try {
    const group = (await client.raw('/apis/metrics.k8s.io', { signal })) as { versions?: { version?: string }[] }
    return group.versions?.some(({ version }) => version === 'v1beta1') === true
  } catch (error) {
    if (signal.aborted) throw error
    return isStatusError(error, 'NotFound') ? false : undefined
  }
}

/** Sums over nodes, as ResourceLists. */
function nodeTotals(nodes: readonly KubeObject[]): { capacity: ResourceList; allocatable: ResourceList } {
  const capacity = new Map<string, Quantity>()
  const allocatable = new Map<string, Quantity>()
  for (const node of nodes) {
    const status = (node['status'] ?? {}) as { capacity?: ResourceList; allocatable?: ResourceList }
    addAmounts(capacity, amountsOf(status.capacity))
    addAmounts(allocatable, amountsOf(status.allocatable))
  }
  return { capacity: listOf(capacity), allocatable: listOf(allocatable) }
}

/** The name of an older MemberCluster for the same physical cluster; undefined if there is none. */
export function olderTwinOf(
  object: DeepReadonly<MemberCluster>,
  uid: string,
  all: readonly DeepReadonly<MemberCluster>[],
): string | undefined {
  const isOlder = (other: DeepReadonly<MemberCluster>): boolean => {
    const [a = '', b = ''] = [other.metadata.creationTimestamp, object.metadata.creationTimestamp]
    return a < b || (a === b && other.metadata.name < object.metadata.name)
  }
  return all.find((other) => other.metadata.name !== object.metadata.name && other.status?.id === uid && isOlder(other))
    ?.metadata.name
}

/**
 * The workloads with something in the member, asked of the server: a member is not released because of a cache alone.
 */
export async function listPlacedWorkloads(
  allClusters: KubeClient,
  member: string,
  signal: AbortSignal,
): Promise<string[]> {
  const found: string[] = []
  for (const { gvr } of workloadKinds) {
    const { items } = await allClusters.list<KubeObject>(gvr, { metadataOnly: true, signal })
    found.push(...items.filter((item) => membersOf(item).includes(member)).map(nameOf))
  }
  return found
}

function isReady(node: KubeObject): boolean {
  const { conditions = [] } = (node['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

function isUnschedulable({ spec }: KubeObject): boolean {
  return (spec as { unschedulable?: boolean } | undefined)?.unschedulable === true
}
