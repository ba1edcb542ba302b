// What is said of pods, nodes and EndpointSlices whose member is lost, as Kubernetes' node lifecycle controller does for a node that does
// not answer: nothing is known to be Ready there. Pure.
import type { Condition, KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { memberLostAnnotation } from '#crds/index.ts'

type CachedObject = DeepReadonly<KubeObject>

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
}

/**
 * The patch (merge, of the status) that makes a pod not Ready; undefined if it is not. `now` is RFC 3339. The reason is the one
 * that tools know from pods of a lost node.
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

/** The patch (merge, of the status) that says of a node that its state is not known; undefined if that is said already. */
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
