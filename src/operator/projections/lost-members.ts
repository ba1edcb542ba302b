// Says of the pods, nodes and EndpointSlices of a lost member that they are not ready. When the member answers again, its syncer writes
// what it reports. Independent of syncers, because none starts while the member is away.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer } from '#client/index.ts'
import { isLostMember, memberAnnotation, memberClusters, type MemberCluster } from '#crds/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { untilOne } from '#operator/framework/until-one.ts'
import { nodeUnknown, podNotReady, sliceNotReady } from './not-ready.ts'

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
