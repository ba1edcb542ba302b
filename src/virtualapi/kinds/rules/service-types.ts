// The Service as its rules see it.
import type { V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node'
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import type { Data } from '../../resources/typed/data.ts'

export interface Service extends KubeObject {
  spec: Data<V1ServiceSpec>
}

/** All types but ExternalName have an address, `None` included. */
export function needsClusterIp({ spec }: Service): boolean {
  return spec.type !== 'ExternalName'
}

export function isHeadless({ spec }: Service): boolean {
  return spec.clusterIPs?.[0] === 'None' || spec.clusterIP === 'None'
}

/** Of its type; whether it gets any is `needsNodePort`. */
export function mayHaveNodePorts({ spec }: Service): boolean {
  return spec.type === 'NodePort' || spec.type === 'LoadBalancer'
}

export function needsNodePort({ spec }: Service): boolean {
  return spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false)
}

export function needsHealthCheckPort({ spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local'
}

/** From outside of the cluster: only then is there a policy for such traffic. */
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
