// The type of Services, and predicates that follow from spec.type.
import type { V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

export interface Service extends KubeObject {
  spec: Data<V1ServiceSpec>
}

/** All types except ExternalName have a cluster IP, which may be `None`. */
export function needsClusterIp({ spec }: Service): boolean {
  return spec.type !== 'ExternalName'
}

/** True if the Service has no cluster IP: it is `None`. */
export function isHeadless({ spec }: Service): boolean {
  return spec.clusterIPs?.[0] === 'None' || spec.clusterIP === 'None'
}

/** True if the type can have node ports; `needsNodePort` tells whether they are allocated. */
export function mayHaveNodePorts({ spec }: Service): boolean {
  return spec.type === 'NodePort' || spec.type === 'LoadBalancer'
}

export function needsNodePort({ spec }: Service): boolean {
  return spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false)
}

/** True if load balancers check the health of each node: with externalTrafficPolicy Local. */
export function needsHealthCheckPort({ spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local'
}

/** True if the Service can be reached from outside the cluster; only then does externalTrafficPolicy apply. */
export function isExternallyAccessible({ spec }: Service): boolean {
  const { type } = spec
  return type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && !!spec.externalIPs?.length)
}

export function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec.selector ?? {}).length > 0
}

export function portsOf({ spec }: Service): Data<V1ServicePort>[] {
  return spec.ports ?? []
}
