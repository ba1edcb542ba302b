// Says of the pods, nodes and EndpointSlices of a lost member that they are not ready. When the member answers again,
// its syncer writes what it reports. Independent of syncers, because none starts while the member is away.
import type { Condition, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer } from '#client/index.ts'
import {
  isLostMember,
  memberAnnotation,
  type MemberCluster,
  memberClusters,
  memberLostAnnotation,
} from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { untilOne } from '#operator/framework/until-one.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'

const gvrs = {
  pods: { group: '', version: 'v1', resource: 'pods' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  nodes: { group: '', version: 'v1', resource: 'nodes' },
} as const
type Resource = keyof typeof gvrs
const services = { group: '', version: 'v1', resource: 'services' } as const
const serviceNameLabel = 'kubernetes.io/service-name'

/** Writes at a time: a member may have thousands of pods, and the API serves others meanwhile. */
const workers = 4

/** Keeps pods and EndpointSlices of lost members not ready. */
export function lostMembersController({ clock = systemClock }: { readonly clock?: Clock } = {}): OperatorController {
  return { name: 'lost-members', run: (context, life) => run(context, clock, life) }
}

async function run(
  context: OperatorContext,
  clock: Clock,
  { signal, started }: Parameters<OperatorController['run']>[1],
): Promise<void> {
  const { informers, tenantInformers, virtual, log } = context
  const members = informers.of<MemberCluster>(memberClusters)
  started()
  await untilOne(members, signal)
  const objects: Record<Resource, Informer<KubeObject>> = {
    pods: tenantInformers.of(gvrs.pods),
    endpointslices: tenantInformers.of(gvrs.endpointslices),
    nodes: tenantInformers.of(gvrs.nodes),
  }
  const ofServices = tenantInformers.of<KubeObject>(services)
  const all = [members, ofServices, ...Object.values(objects)]
  await Promise.all(all.map((informer) => informer.synced(signal)))
  const lost = new Set<string>()
  using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: (key) => clusterInKey(key.slice(key.indexOf(' ') + 1)) })
  using stack = new DisposableStack()
  const resources = Object.keys(objects) as Resource[]
  stack.defer(
    members.onChange(({ key, after }) => {
      if (!isLostMember(after)) {
        lost.delete(key)
        return
      }
      if (lost.has(key)) return
      lost.add(key)
      for (const resource of resources)
        for (const name of objects[resource].store.keys())
          if (memberOf(objects[resource].store.get(name)) === key) queue.add(`${resource} ${name}`)
    }),
  )
  // What was on its way when the member was lost.
  for (const resource of resources)
    stack.defer(
      objects[resource].onChange(({ key, after }) => {
        if (lost.size > 0 && lost.has(memberOf(after) ?? '')) queue.add(`${resource} ${key}`)
      }),
    )
  const isAlwaysReady = (
    cluster: string,
    { metadata: { namespace = '', labels } }: DeepReadonly<KubeObject>,
  ): boolean => {
    const service = ofServices.store.get(keyFor({ cluster, namespace, name: labels?.[serviceNameLabel] ?? '' }))
    return (service?.['spec'] as { publishNotReadyAddresses?: boolean } | undefined)?.publishNotReadyAddresses === true
  }
  const reconcile = async (visit: string, life: AbortSignal): Promise<void> => {
    const blank = visit.indexOf(' ')
    const [resource, key] = [visit.slice(0, blank) as Resource, visit.slice(blank + 1)]
    const object = objects[resource].store.get(key)
    const member = memberOf(object)
    if (object === undefined || member === undefined || !lost.has(member)) return
    const { cluster = '', namespace = '', name } = parseKey(key)
    const isSlice = resource === 'endpointslices'
    if (isSlice && isAlwaysReady(cluster, object)) return
    const now = timestamp(clock.now())
    const patch = isSlice
      ? sliceNotReady(object)
      : resource === 'pods'
        ? podNotReady(object, member, now)
        : nodeUnknown(object, member, now)
    if (patch === undefined) return
    const options = { ...(!isSlice && { subresource: 'status' }), signal: life }
    // Conflict: it has changed, and that change causes the next visit.
    await virtual(`/clusters/${cluster}`)
      .patch(gvrs[resource], { ...(namespace && { namespace }), name }, 'merge', patch, options)
      .catch(tolerate('NotFound', 'Conflict'))
  }
  await runController({ name: 'lost-members', queue, workers, reconcile, log, signal })
}

function memberOf(object: DeepReadonly<KubeObject> | undefined): string | undefined {
  return object?.metadata.annotations?.[memberAnnotation]
}

type CachedObject = DeepReadonly<KubeObject>

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
}

/**
 * The patch (merge, of the status) that makes a pod not Ready; undefined if it is not. `now` is RFC 3339. The reason is
 * the one that tools know from pods of a lost node.
 */
export function podNotReady(pod: CachedObject, member: string, now: string): object | undefined {
  const { conditions = [] } = (pod['status'] ?? {}) as { conditions?: readonly Condition[] }
  if (!conditions.some(isReadyTrue)) return undefined
  const lost = {
    status: 'False',
    reason: 'NodeNotReady',
    message: `member cluster "${member}", in which the pod is, does not answer`,
    lastTransitionTime: now,
  }
  const changed = conditions.map((one) => (isReadyTrue(one) ? { ...one, ...lost } : one))
  const { uid, resourceVersion } = pod.metadata
  return { metadata: { uid, resourceVersion }, status: { conditions: changed } }
}

/**
 * The patch (merge, of the status) that says of a node that its state is not known; undefined if that is said already.
 */
export function nodeUnknown(node: CachedObject, member: string, now: string): object | undefined {
  const { conditions = [] } = (node['status'] ?? {}) as { conditions?: readonly Condition[] }
  if (!conditions.some(({ type, status }) => type === 'Ready' && status !== 'Unknown')) return undefined
  const lost = {
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: `member cluster "${member}", to which the node belongs, does not answer`,
    lastTransitionTime: now,
  }
  const changed = conditions.map((one) => (one.type === 'Ready' ? { ...one, ...lost } : one))
  const { uid, resourceVersion } = node.metadata
  return { metadata: { uid, resourceVersion }, status: { conditions: changed } }
}

/** The patch (merge) that makes the endpoints of a slice not ready; undefined if none is, ready or serving. */
export function sliceNotReady(slice: CachedObject): object | undefined {
  const endpoints = (slice['endpoints'] ?? []) as readonly Endpoint[]
  const counts = ({ conditions: { ready, serving } = {} }: Endpoint): boolean => ready !== false || serving === true
  if (!endpoints.some(counts)) return undefined
  const changed = endpoints.map((one) => ({ ...one, conditions: { ...one.conditions, ready: false, serving: false } }))
  const { uid, resourceVersion } = slice.metadata
  return { metadata: { uid, resourceVersion, annotations: { [memberLostAnnotation]: 'true' } }, endpoints: changed }
}

function isReadyTrue({ type, status }: DeepReadonly<Condition>): boolean {
  return type === 'Ready' && status === 'True'
}
