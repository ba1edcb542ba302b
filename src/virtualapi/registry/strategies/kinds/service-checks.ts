// What must hold of a Service.
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import { endpointIpCauses, legacyIpCauses } from '../validation/ip-values.ts'
import {
  between,
  cidr,
  ipAddress,
  label,
  labels,
  oneOf,
  portNumber,
  portOrName,
  protocols,
  requiredOneOf,
  subdomain,
} from '../validation/values.ts'
import { isHeadless, needsHealthCheckPort, portsOf, type Service } from './service-types.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const policies = ['Cluster', 'Local']

/** Everything but allocation. */
export function serviceCauses(service: Service): StatusCause[] {
  const { spec } = service
  const headless = isHeadless(service)
  const causes: StatusCause[] = []
  if (portsOf(service).length === 0 && !headless && spec.type !== 'ExternalName')
    causes.push(fieldRequired('spec.ports'))
  if (spec.type === 'LoadBalancer' || spec.type === 'NodePort') {
    if (headless)
      causes.push(fieldInvalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`))
  } else if (spec.type === 'ExternalName') {
    if (spec.clusterIPs?.length)
      causes.push(fieldForbidden('spec.clusterIPs', 'may not be set for ExternalName services'))
    const name = spec.externalName?.replace(/\.$/, '') ?? ''
    if (name === '') causes.push(fieldRequired('spec.externalName'))
    else causes.push(...subdomain('spec.externalName', name))
  }
  causes.push(
    ...portsOf(service).flatMap((_, index) => portCauses(service, index)),
    ...labels('spec.selector', spec.selector),
    ...requiredOneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']),
  )
  if (spec.sessionAffinity === 'ClientIP')
    causes.push(
      ...between(
        'spec.sessionAffinityConfig.clientIP.timeoutSeconds',
        spec.sessionAffinityConfig?.clientIP?.timeoutSeconds,
        1,
        86400,
      ),
    )
  causes.push(...addressCauses(service))
  for (const [index, ip] of (spec.externalIPs ?? []).entries()) {
    const wrong = legacyIpCauses(`spec.externalIPs[${index}]`, ip)
    causes.push(...(wrong.length > 0 ? wrong : endpointIpCauses(`spec.externalIPs[${index}]`, ip)))
  }
  causes.push(...requiredOneOf('spec.type', spec.type, types), ...uniquePortCauses(service))
  if (spec.type === 'ClusterIP')
    for (const [index, { nodePort }] of portsOf(service).entries())
      if (nodePort)
        causes.push(fieldForbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'"))
  return [...causes, ...loadBalancerCauses(service), ...trafficCauses(service)]
}

function portCauses(service: Service, index: number): StatusCause[] {
  const ports = portsOf(service)
  const port = ports[index]
  if (port === undefined) return []
  const at = `spec.ports[${index}]`
  const { name = '', protocol, targetPort } = port
  const causes: StatusCause[] = []
  if (name === '') {
    if (ports.length > 1) causes.push(fieldRequired(`${at}.name`))
  } else {
    causes.push(...label(`${at}.name`, name))
    if (ports.slice(0, index).some((other) => other.name === name)) causes.push(fieldDuplicate(`${at}.name`, name))
  }
  causes.push(...portNumber(`${at}.port`, port.port), ...requiredOneOf(`${at}.protocol`, protocol, protocols))
  causes.push(...portOrName(`${at}.targetPort`, targetPort ?? 0))
  if (isHeadless(service) && targetPort !== port.port && typeof targetPort === 'number' && targetPort === 0)
    causes.push(
      fieldInvalid(`${at}.targetPort`, targetPort, "must be equal to the value of 'port' when clusterIP = None"),
    )
  return causes
}

function uniquePortCauses(service: Service): StatusCause[] {
  const seen = new Set<string>()
  return portsOf(service).flatMap(({ port, protocol = 'TCP' }, index) => {
    const key = `${protocol}/${port}`
    const again = seen.has(key)
    seen.add(key)
    return again
      ? [
          {
            reason: 'FieldValueDuplicate',
            message: `Duplicate value: {"Name":"","Protocol":"${protocol}","AppProtocol":null,"Port":${port},"TargetPort":0,"NodePort":0}`,
            field: `spec.ports[${index}]`,
          },
        ]
      : []
  })
}

function addressCauses({ spec }: Service): StatusCause[] {
  const ips = spec.clusterIPs ?? []
  if (spec.type === 'ExternalName') return []
  const causes: StatusCause[] = []
  if (spec.clusterIP && ips.length > 0 && ips[0] !== spec.clusterIP)
    causes.push(fieldInvalid('spec.clusterIPs[0]', ips, 'first value must match `clusterIP`'))
  if (ips.length > 1 && ips.includes('None'))
    causes.push(fieldInvalid('spec.clusterIPs', ips, "'None' must be the first and only value"))
  for (const [index, ip] of ips.entries())
    if (ip !== 'None' && ip !== '') causes.push(...ipAddress(`spec.clusterIPs[${index}]`, ip))
  if (ips.length > 2) causes.push(fieldInvalid('spec.clusterIPs', ips, 'may only hold up to 2 values'))
  for (const [index, family] of (spec.ipFamilies ?? []).entries())
    causes.push(...oneOf(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']))
  return [
    ...causes,
    ...oneOf('spec.ipFamilyPolicy', spec.ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack']),
  ]
}

function loadBalancerCauses({ spec }: Service): StatusCause[] {
  const causes: StatusCause[] = []
  const ranges = spec.loadBalancerSourceRanges ?? []
  if (ranges.length > 0 && spec.type !== 'LoadBalancer')
    causes.push(fieldForbidden('spec.LoadBalancerSourceRanges', "may only be used when `type` is 'LoadBalancer'"))
  else
    for (const [index, range] of ranges.entries())
      causes.push(...cidr(`spec.LoadBalancerSourceRanges[${index}]`, range))
  if (spec.type !== 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== undefined)
    causes.push(fieldForbidden('spec.allocateLoadBalancerNodePorts', "may only be used when `type` is 'LoadBalancer'"))
  if (spec.type !== 'LoadBalancer' && spec.loadBalancerClass !== undefined)
    causes.push(fieldForbidden('spec.loadBalancerClass', "may only be used when `type` is 'LoadBalancer'"))
  return causes
}

function trafficCauses(service: Service): StatusCause[] {
  const { spec } = service
  const { type, externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort = 0 } = spec
  const reachable =
    type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && !!spec.externalIPs?.length)
  const causes: StatusCause[] = []
  if (reachable) causes.push(...requiredOneOf('spec.externalTrafficPolicy', externalTrafficPolicy, policies))
  else if (externalTrafficPolicy)
    causes.push(
      fieldInvalid(
        'spec.externalTrafficPolicy',
        externalTrafficPolicy,
        'may only be set for externally-accessible services',
      ),
    )
  if (!needsHealthCheckPort(service) && healthCheckNodePort !== 0)
    causes.push(
      fieldInvalid(
        'spec.healthCheckNodePort',
        healthCheckNodePort,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    )
  if (healthCheckNodePort < 0)
    causes.push(fieldInvalid('spec.healthCheckNodePort', healthCheckNodePort, 'must be between 1 and 65535, inclusive'))
  if (type === 'ExternalName') return causes
  if (internalTrafficPolicy !== undefined && !policies.includes(internalTrafficPolicy))
    causes.push(fieldNotSupported('spec.internalTrafficPolicy', internalTrafficPolicy, policies))
  else if (internalTrafficPolicy === undefined && types.includes(type ?? ''))
    causes.push(fieldRequired('spec.internalTrafficPolicy'))
  return causes
}

/** An address stays while there is one; what was allocated is not swapped. */
export function serviceChangeCauses(service: Service, old: Service): StatusCause[] {
  const before = old.spec.clusterIPs ?? []
  const now = service.spec.clusterIPs ?? []
  if (old.spec.type === 'ExternalName' || service.spec.type === 'ExternalName') return []
  if (before[0] === undefined || isDeepStrictEqual(before[0], now[0])) return []
  return [
    fieldInvalid(
      'spec.clusterIPs[0]',
      now,
      now.length === 0 ? 'primary clusterIP can not be unset' : 'may not change once set',
    ),
  ]
}

/** True for a Service whose own form is right: only then is anything allocated. */
export function isWellFormed(service: Service): boolean {
  return (
    serviceCauses(service).length === 0 &&
    (service.spec.clusterIPs ?? []).every((ip) => ip === 'None' || isIP(ip) !== 0)
  )
}
