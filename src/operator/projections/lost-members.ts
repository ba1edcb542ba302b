// Makes the pods, nodes and EndpointSlices of a lost member not ready. When the member answers again, its syncer writes
// its reports. Independent of syncers, because none starts while the member is away.
import type { Condition, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer } from '#client/index.ts'
import { isLostMember, memberAnnotation, memberLostAnnotation } from '#crds/index.ts'
import type { OperatorController } from '#operator/framework/operator-context.ts'
import { loopWithMembers } from '#operator/framework/loop.ts'

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

/** Keeps pods, nodes and EndpointSlices of lost members not ready. */
export function lostMembersController({ clock = systemClock }: { readonly clock?: Clock } = {}): OperatorController {
  return loopWithMembers('lost-members', ({ context, members }) => {
    const { tenantInformers, virtual } = context
    const objects: Record<Resource, Informer<KubeObject>> = {
      pods: tenantInformers.of(gvrs.pods),
      endpointslices: tenantInformers.of(gvrs.endpointslices),
      nodes: tenantInformers.of(gvrs.nodes),
    }
    const resources = Object.keys(objects) as Resource[]
    const ofServices = tenantInformers.of<KubeObject>(services)
    const lost = new Set<string>()
    const isAlwaysReady = (
      cluster: string,
      { metadata: { namespace = '', labels } }: DeepReadonly<KubeObject>,
    ): boolean => {
      const service = ofServices.store.get(keyFor({ cluster, namespace, name: labels?.[serviceNameLabel] ?? '' }))
      const { publishNotReadyAddresses } = (service?.['spec'] ?? {}) as { publishNotReadyAddresses?: boolean }
      return publishNotReadyAddresses === true
    }
    return {
      workers,
      fairnessKey: (key) => clusterInKey(key.slice(key.indexOf(' ') + 1)),
      informers: [members, ofServices, ...Object.values(objects)],
      follow: (add) => [
        members.onChange(({ key, after }) => {
          if (!isLostMember(after)) {
            lost.delete(key)
            return
          }
          if (lost.has(key)) return
          lost.add(key)
          for (const resource of resources)
            for (const name of objects[resource].store.keys())
              if (memberOf(objects[resource].store.get(name)) === key) add(`${resource} ${name}`)
        }),
        // Reports of the syncer that were on their way when the member was lost are undone.
        ...resources.map((resource) =>
          objects[resource].onChange(({ key, after }) => {
            if (lost.size > 0 && lost.has(memberOf(after) ?? '')) add(`${resource} ${key}`)
          }),
        ),
      ],
      reconcile: async (task, signal) => {
        const blank = task.indexOf(' ')
        const [resource, key] = [task.slice(0, blank) as Resource, task.slice(blank + 1)]
        const object = objects[resource].store.get(key)
        const member = memberOf(object)
        if (object === undefined || member === undefined || !lost.has(member)) return
        const { cluster = '', namespace = '', name } = parseKey(key)
        if (resource === 'endpointslices' && isAlwaysReady(cluster, object)) return
        const patch = notReady[resource](object, member, timestamp(clock.now()))
        if (patch === undefined) return
        const options = { ...(resource !== 'endpointslices' && { subresource: 'status' }), signal }
        // Conflict: it has changed, and that change causes the next reconcile.
        await virtual(`/clusters/${cluster}`)
          .patch(gvrs[resource], { ...(namespace && { namespace }), name }, 'merge', patch, options)
          .catch(tolerate('NotFound', 'Conflict'))
      },
    }
  })
}

const notReady: Record<Resource, (object: CachedObject, member: string, now: string) => object | undefined> = {
  pods: podNotReady,
  nodes: nodeUnknown,
  endpointslices: sliceNotReady,
}

function memberOf(object: DeepReadonly<KubeObject> | undefined): string | undefined {
  return object?.metadata.annotations?.[memberAnnotation]
}

type CachedObject = DeepReadonly<KubeObject>

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
}

/**
 * The patch (merge, of the status) that makes a Ready pod not Ready; undefined if the pod is not Ready. `now` is RFC
 * 3339. The reason is the one that tools know from pods of a lost node.
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
 * The patch (merge, of the status) that sets condition Ready of a node to Unknown; undefined if it is Unknown already
 * or absent.
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

/** The patch (merge) that makes the endpoints of a slice not ready; undefined if no endpoint is ready or serving. */
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
