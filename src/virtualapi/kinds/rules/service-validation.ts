// Validation of Services.
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { endpointIpCauses, legacyCidrCauses, legacyIpCauses } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  fieldImmutable,
  ipAddress,
  label,
  labels,
  portNumber,
  portOrName,
  protocols,
  qualifiedName,
  requiredOneOf,
  subdomain,
  supported,
} from '#virtualapi/kinds/validation/values.ts'
import { isExternallyAccessible, isHeadless, needsHealthCheckPort, portsOf, type Service } from './service-types.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const policies = ['Cluster', 'Local']
const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
const longestSession = 86_400

/** Validation errors of a Service, except those found during allocation. */
export function serviceCauses(service: Service, old?: Service): StatusCause[] {
  const { spec } = service
  const headless = isHeadless(service)
  const causes: StatusCause[] = []
  if (portsOf(service).length === 0 && !headless && spec.type !== 'ExternalName')
    causes.push(fieldRequired('spec.ports'))
  if (spec.type === 'LoadBalancer' || spec.type === 'NodePort') {
    if (headless)
      causes.push(fieldInvalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`))
  } else if (spec.type === 'ExternalName') {
    const forbidden = 'may not be set for ExternalName services'
    if (spec.clusterIPs?.length) causes.push(fieldForbidden('spec.clusterIPs', forbidden))
    if (spec.ipFamilies?.length) causes.push(fieldForbidden('spec.ipFamilies', forbidden))
    if (spec.ipFamilyPolicy !== undefined) causes.push(fieldForbidden('spec.ipFamilyPolicy', forbidden))
    const name = spec.externalName?.replace(/\.$/, '') ?? ''
    if (name === '') causes.push(fieldRequired('spec.externalName'))
    else causes.push(...subdomain('spec.externalName', name))
  }
  const portNames = new Set<string>()
  causes.push(
    ...portsOf(service).flatMap((_, index) => portCauses(service, index, portNames)),
    ...labels('spec.selector', spec.selector),
    ...requiredOneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']),
  )
  const timeout = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? longestSession
  if (spec.sessionAffinity === 'ClientIP' && (timeout <= 0 || timeout > longestSession))
    causes.push(
      fieldInvalid(
        'spec.sessionAffinityConfig.clientIP.timeoutSeconds',
        timeout,
        `must be greater than 0 and less than ${longestSession}`,
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
  return [...causes, ...sourceRangeCauses(service, old), ...loadBalancerCauses(service), ...trafficCauses(service)]
}

/** `names`: those of the ports before this one; this one's is added. */
function portCauses(service: Service, index: number, names: Set<string>): StatusCause[] {
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
    if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    names.add(name)
  }
  causes.push(...portNumber(`${at}.port`, port.port), ...requiredOneOf(`${at}.protocol`, protocol, protocols))
  causes.push(...portOrName(`${at}.targetPort`, targetPort ?? 0))
  if (port.appProtocol !== undefined) causes.push(...qualifiedName(`${at}.appProtocol`, port.appProtocol))
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

/** Validates addresses and IP families, before any address is allocated. */
export function addressCauses(service: Service): StatusCause[] {
  const { spec } = service
  const { clusterIP = '', clusterIPs: ips = [], ipFamilies = [] } = spec
  if (spec.type === 'ExternalName') return []
  const causes: StatusCause[] = []
  const wrong = (text: string): void => void causes.push(fieldInvalid('spec.clusterIPs', ips, text))
  if (clusterIP !== '' && ips.length === 0) causes.push(fieldRequired('spec.clusterIPs'))
  else if (clusterIP !== '' && ips[0] !== clusterIP) wrong('first value must match `clusterIP`')
  else if (clusterIP === '' && ips.length > 0) wrong('must be empty when `clusterIP` is not specified')
  for (const [index, family] of ipFamilies.entries()) {
    causes.push(...supported(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']))
    if (ipFamilies.indexOf(family) < index) causes.push(fieldDuplicate(`spec.ipFamilies[${index}]`, family))
  }
  causes.push(
    ...supported('spec.ipFamilyPolicy', spec.ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack']),
  )
  if (ips.length > 1 && ips[0] === 'None') wrong("'None' must be the first and only value")
  const malformed = ips.flatMap((ip, index) =>
    index === 0 && ip === 'None' ? [] : ipAddress(`spec.clusterIPs[${index}]`, ip),
  )
  causes.push(...malformed)
  if (ips.length > 2) wrong('may only hold up to 2 values')
  if (malformed.length > 0 || (ips.length > 1 && ips[0] === 'None')) return causes
  if (ips.length > 1 && new Set(ips.map(isIP)).size < ips.length)
    wrong('may specify no more than one IP for each IP family')
  return isHeadless(service) ? causes : [...causes, ...familyCauses(ips, ipFamilies)]
}

function familyCauses(ips: readonly string[], families: readonly string[]): StatusCause[] {
  return ips.flatMap((ip, index) => {
    const family = families[index]
    if (family === undefined || family === `IPv${isIP(ip)}`) return []
    return [
      fieldInvalid(
        `spec.clusterIPs[${index}]`,
        ip,
        `expected an ${family} value as indicated by \`ipFamilies[${index}]\``,
      ),
    ]
  })
}

function loadBalancerCauses({ spec }: Service): StatusCause[] {
  const causes: StatusCause[] = []
  if (spec.type !== 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== undefined)
    causes.push(fieldForbidden('spec.allocateLoadBalancerNodePorts', "may only be used when `type` is 'LoadBalancer'"))
  if (spec.type === 'LoadBalancer') {
    if (spec.loadBalancerClass !== undefined)
      causes.push(...qualifiedName('spec.loadBalancerClass', spec.loadBalancerClass))
  } else if (spec.loadBalancerClass !== undefined)
    causes.push(fieldForbidden('spec.loadBalancerClass', "may only be used when `type` is 'LoadBalancer'"))
  return causes
}

const rangesAnnotation = 'service.beta.kubernetes.io/load-balancer-source-ranges'

/**
 * Validates source ranges of a load balancer, in the spec or in the older annotation. Whitespace around a range is
 * accepted.
 */
function sourceRangeCauses({ metadata, spec }: Service, old: Service | undefined): StatusCause[] {
  const { type, loadBalancerSourceRanges: ranges = [] } = spec
  const annotation = metadata.annotations?.[rangesAnnotation]
  if (ranges.length === 0 && annotation === undefined) return []
  const path = ranges.length > 0 ? 'spec.LoadBalancerSourceRanges' : `metadata.annotations[${rangesAnnotation}]`
  const causes = type === 'LoadBalancer' ? [] : [fieldForbidden(path, "may only be used when `type` is 'LoadBalancer'")]
  if (ranges.length > 0)
    return [...causes, ...ranges.flatMap((range, index) => legacyCidrCauses(`${path}[${index}]`, range.trim()))]
  const text = annotation?.trim() ?? ''
  if (text === '' || annotation === old?.metadata.annotations?.[rangesAnnotation]) return causes
  return [...causes, ...text.split(',').flatMap((range) => legacyCidrCauses(path, range.trim()))]
}

function trafficCauses(service: Service): StatusCause[] {
  const { spec } = service
  const { type, externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort = 0 } = spec
  const causes: StatusCause[] = supported('spec.trafficDistribution', spec.trafficDistribution, distributions)
  if (isExternallyAccessible(service))
    causes.push(...requiredOneOf('spec.externalTrafficPolicy', externalTrafficPolicy, policies))
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
  if (healthCheckNodePort < 0 || healthCheckNodePort > 65535)
    causes.push(fieldInvalid('spec.healthCheckNodePort', healthCheckNodePort, 'must be between 1 and 65535, inclusive'))
  if (internalTrafficPolicy !== undefined && !policies.includes(internalTrafficPolicy))
    causes.push(fieldNotSupported('spec.internalTrafficPolicy', internalTrafficPolicy, policies))
  else if (internalTrafficPolicy === undefined && type !== 'ExternalName' && types.includes(type ?? ''))
    causes.push(fieldRequired('spec.internalTrafficPolicy'))
  return causes
}

/** Errors for immutable fields: the primary address, the health check port and the load balancer class. */
export function serviceChangeCauses(service: Service, old: Service): StatusCause[] {
  return [
    ...addressChangeCauses(service, old),
    ...(needsHealthCheckPort(old) &&
    needsHealthCheckPort(service) &&
    service.spec.healthCheckNodePort !== old.spec.healthCheckNodePort
      ? [fieldForbidden('spec.healthCheckNodePort', fieldImmutable)]
      : []),
    ...classChangeCauses(service, old),
  ]
}

function classChangeCauses({ spec }: Service, { spec: before }: Service): StatusCause[] {
  const { type, loadBalancerClass = null } = spec
  const changed = loadBalancerClass !== (before.loadBalancerClass ?? null)
  return type === 'LoadBalancer' && before.type === 'LoadBalancer' && changed
    ? [fieldInvalid('spec.loadBalancerClass', loadBalancerClass, 'may not change once set')]
    : []
}

function addressChangeCauses(service: Service, old: Service): StatusCause[] {
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

/** True if the Service is valid by itself. Only then are addresses and ports allocated. */
export function isValidService(service: Service): boolean {
  return (
    serviceCauses(service).length === 0 &&
    (service.spec.clusterIPs ?? []).every((ip) => ip === 'None' || isIP(ip) !== 0)
  )
}
