// What of a Service nobody looks at.
import { isHeadless, type Service } from './service-types.ts'

const topologyHints = 'service.kubernetes.io/topology-aware-hints'
const topologyMode = 'service.kubernetes.io/topology-mode'

/** Warnings for the writer of a good Service. */
export function serviceWarnings(service: Service): string[] {
  const { metadata, spec } = service
  const { type, externalIPs = [], externalName = '', loadBalancerIP = '', sessionAffinity } = spec
  const headless = isHeadless(service)
  const warnings: readonly (readonly [boolean, string])[] = [
    [
      topologyHints in (metadata.annotations ?? {}),
      `annotation ${topologyHints} is deprecated, please use ${topologyMode} instead`,
    ],
    [headless && loadBalancerIP !== '', 'spec.loadBalancerIP is ignored for headless services'],
    [headless && externalIPs.length > 0, 'spec.externalIPs is ignored for headless services'],
    [headless && sessionAffinity !== 'None', 'spec.SessionAffinity is ignored for headless services'],
    [type === 'ExternalName' && externalIPs.length > 0, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [
      type !== 'ExternalName' && externalName !== '',
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ],
  ]
  return warnings.filter(([holds]) => holds).map(([, text]) => text)
}
