// Defaults of the core kinds other than pods.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { fill, filling, objectIn, objectsIn, type DefaultFunctions } from './default-functions.ts'

export const coreDefaults: DefaultFunctions = {
  'core.v1.Namespace': (namespace) => {
    const metadata = objectIn(namespace, 'metadata')
    const name = metadata['name']
    if (typeof name === 'string' && name !== '') {
      metadata['labels'] = { ...objectIn(metadata, 'labels'), 'kubernetes.io/metadata.name': name }
    }
  },
  'core.v1.NamespaceStatus': filling({ phase: 'Active' }),
  'core.v1.ServiceSpec': serviceDefaults,
  'core.v1.ServicePort': (port) => {
    fill(port, { protocol: 'TCP' })
    const { targetPort } = port
    if (targetPort === undefined || targetPort === 0 || targetPort === '') port['targetPort'] = port['port'] ?? 0
  },
  'core.v1.Service': (service) => {
    if (objectIn(service, 'spec')['type'] !== 'LoadBalancer') return
    for (const ingress of objectsIn(objectIn(objectIn(service, 'status'), 'loadBalancer'), 'ingress'))
      if (ingress['ip'] !== undefined) fill(ingress, { ipMode: 'VIP' })
  },
  'core.v1.EndpointPort': filling({ protocol: 'TCP' }),
  'core.v1.Secret': filling({ type: 'Opaque' }),
  'core.v1.PersistentVolumeSpec': filling({ persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' }),
  'core.v1.PersistentVolumeStatus': filling({ phase: 'Pending' }),
  'core.v1.PersistentVolumeClaimSpec': filling({ volumeMode: 'Filesystem' }),
  'core.v1.PersistentVolumeClaim': (claim) => {
    fill(objectIn(claim, 'status'), { phase: 'Pending' })
  },
  'core.v1.NodeStatus': (status) => {
    if (status['capacity'] !== undefined) fill(status, { allocatable: status['capacity'] })
  },
  'core.v1.LimitRangeItem': (item) => {
    if (item['type'] !== 'Container') return
    const limits = { ...objectIn(item, 'max'), ...objectIn(item, 'default') }
    const requests = { ...objectIn(item, 'min'), ...limits, ...objectIn(item, 'defaultRequest') }
    if (Object.keys(limits).length > 0) item['default'] = limits
    if (Object.keys(requests).length > 0) item['defaultRequest'] = requests
  },
}

function serviceDefaults(spec: JsonObject): void {
  fill(spec, { sessionAffinity: 'None', type: 'ClusterIP' })
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig']
  if (spec['sessionAffinity'] === 'ClientIP') {
    const { timeoutSeconds } = objectIn(objectIn(spec, 'sessionAffinityConfig'), 'clientIP')
    spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: timeoutSeconds ?? 10800 } }
  }
  const { type } = spec
  const external = type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && hasExternalIps(spec))
  if (external) fill(spec, { externalTrafficPolicy: 'Cluster' })
  if (type === 'NodePort' || type === 'LoadBalancer' || type === 'ClusterIP')
    fill(spec, { internalTrafficPolicy: 'Cluster' })
  if (type === 'LoadBalancer') fill(spec, { allocateLoadBalancerNodePorts: true })
}

function hasExternalIps(spec: JsonObject): boolean {
  return Array.isArray(spec['externalIPs']) && spec['externalIPs'].length > 0
}
