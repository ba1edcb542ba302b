// Warnings about ignored or deprecated fields of Services, and about addresses in discouraged forms.
import type { V1LoadBalancerIngress } from '@kubernetes/client-node'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { cidrWarnings, ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import { isHeadless, type Service } from './service-types.ts'

const topologyHints = 'service.kubernetes.io/topology-aware-hints'
const topologyMode = 'service.kubernetes.io/topology-mode'

/** Warnings about a valid Service, in upstream's order. */
export function serviceWarnings(service: Service): string[] {
  const { metadata, spec } = service
  const { type, externalIPs = [], externalName = '', loadBalancerIP = '', loadBalancerSourceRanges = [] } = spec
  const hasIp = spec.clusterIP !== undefined && spec.clusterIP !== '' && spec.clusterIP !== 'None'
  return [
    ...(topologyHints in (metadata.annotations ?? {})
      ? [`annotation ${topologyHints} is deprecated, please use ${topologyMode} instead`]
      : []),
    ...(hasIp ? (spec.clusterIPs ?? []).flatMap((ip, index) => ipWarnings(`spec.clusterIPs[${index}]`, ip)) : []),
    ...(isHeadless(service) ? ignoredOfHeadless(spec) : []),
    ...externalIPs.flatMap((ip, index) => ipWarnings(`spec.externalIPs[${index}]`, ip)),
    ...(loadBalancerIP === '' ? [] : ipWarnings('spec.loadBalancerIP', loadBalancerIP)),
    ...loadBalancerSourceRanges.flatMap((cidr, index) => cidrWarnings(`spec.loadBalancerSourceRanges[${index}]`, cidr)),
    ...(type === 'ExternalName' && externalIPs.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : []),
    ...(type !== 'ExternalName' && externalName !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ]
}

function ignoredOfHeadless({ loadBalancerIP = '', externalIPs = [], sessionAffinity }: Service['spec']): string[] {
  return [
    ...(loadBalancerIP === '' ? [] : ['spec.loadBalancerIP is ignored for headless services']),
    ...(externalIPs.length === 0 ? [] : ['spec.externalIPs is ignored for headless services']),
    ...(sessionAffinity === 'None' ? [] : ['spec.SessionAffinity is ignored for headless services']),
  ]
}

/** Warnings about addresses in the load balancer status of a Service or Ingress. */
export function loadBalancerWarnings(status: unknown): string[] {
  const balancer = isJsonObject(status) ? status['loadBalancer'] : undefined
  const ingress = isJsonObject(balancer) ? balancer['ingress'] : undefined
  return ((ingress ?? []) as readonly Data<V1LoadBalancerIngress>[]).flatMap(({ ip }, index) =>
    ip ? ipWarnings(`status.loadBalancer.ingress[${index}]`, ip) : [],
  )
}
