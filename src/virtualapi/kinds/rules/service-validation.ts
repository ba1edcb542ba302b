// Validation of Services.
import { isIP } from 'node:net'
import type { V1ServicePort } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  ipAddress,
  label,
  labels,
  portNumber,
  portOrName,
  protocols,
  qualifiedName,
  subdomain,
} from '#virtualapi/kinds/validation/basic-rules.ts'
import { endpointIp, legacyCidr, legacyIp } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  all,
  causesOf,
  each,
  fieldImmutable,
  fields,
  firstOf,
  forbidden,
  given,
  oneOf,
  required,
  unique,
  when,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { isExternallyAccessible, isHeadless, needsHealthCheckPort, portsOf, type Service } from './service-types.ts'

type Spec = Service['spec']
type Port = Data<V1ServicePort>

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const policy = oneOf(['Cluster', 'Local'])
const longestSession = 86_400

const notForExternalName = forbidden('may not be set for ExternalName services')
const externalNameSpec = fields<Spec>({
  clusterIPs: given(notForExternalName),
  ipFamilies: given(notForExternalName),
  ipFamilyPolicy: notForExternalName,
  externalName: (name = '', report) => report.check(requiredDomain, name.replace(/\.$/, '')),
})
const requiredDomain = required(subdomain)

const portName = all<string>(label, unique())

const port: Rule<Port, Service> = ({ name = '', port: number, protocol, targetPort, appProtocol }, report, service) => {
  if (name !== '') report.at('name', portName, name)
  else if (portsOf(service).length > 1) report.required('name')
  report.at('port', portNumber, number)
  report.at('protocol', knownProtocol, protocol)
  report.at('targetPort', portOrName, targetPort ?? 0)
  if (appProtocol !== undefined) report.at('appProtocol', qualifiedName, appProtocol)
  if (isHeadless(service) && targetPort === 0 && number !== 0)
    report.invalid('targetPort', targetPort, "must be equal to the value of 'port' when clusterIP = None")
}
const knownProtocol = required(oneOf(protocols))

const repeatedPort: Rule<Port> = ({ port: number, protocol = 'TCP' }, report) => {
  if (!report.isRepeated(repeatedPort, `${protocol}/${number}`)) return
  const shown = `{"Name":"","Protocol":"${protocol}","AppProtocol":null,"Port":${number},"TargetPort":0,"NodePort":0}`
  report.add({ reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown}`, field: report.path() })
}

const withoutNodePort = fields<Port>({
  nodePort: (nodePort, report) => report.check(noNodePort, nodePort || undefined),
})
const noNodePort = forbidden("may not be used when `type` is 'ClusterIP'")

const session: Rule<Spec> = ({ sessionAffinity, sessionAffinityConfig }, report) => {
  const timeout = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? longestSession
  if (sessionAffinity === 'ClientIP' && (timeout <= 0 || timeout > longestSession))
    report.invalid(
      'sessionAffinityConfig.clientIP.timeoutSeconds',
      timeout,
      `must be greater than 0 and less than ${longestSession}`,
    )
}

const ipFamily = all<string>(oneOf(['IPv4', 'IPv6']), unique())
const familyPolicy = fields<Spec>({
  ipFamilies: each(ipFamily),
  ipFamilyPolicy: oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack']),
})

/** Addresses and IP families, before any address is allocated. */
const addresses: Rule<Spec> = (spec, report) => {
  const { clusterIP = '', clusterIPs: ips = [], ipFamilies = [] } = spec
  if (spec.type === 'ExternalName') return
  const wrong = (text: string): void => report.invalid('clusterIPs', ips, text)
  if (clusterIP !== '' && ips.length === 0) report.required('clusterIPs')
  else if (clusterIP !== '' && ips[0] !== clusterIP) wrong('first value must match `clusterIP`')
  else if (clusterIP === '' && ips.length > 0) wrong('must be empty when `clusterIP` is not specified')
  report.check(familyPolicy, spec)
  const noneOfMany = ips.length > 1 && ips[0] === 'None'
  if (noneOfMany) wrong("'None' must be the first and only value")
  const before = report.causes.length
  for (const [index, ip] of ips.entries())
    if (index > 0 || ip !== 'None') report.at(`clusterIPs[${index}]`, ipAddress, ip)
  const malformed = report.causes.length > before
  if (ips.length > 2) wrong('may only hold up to 2 values')
  if (malformed || noneOfMany) return
  if (ips.length > 1 && new Set(ips.map(isIP)).size < ips.length)
    wrong('may specify no more than one IP for each IP family')
  if (clusterIP === 'None' || ips[0] === 'None') return
  for (const [index, ip] of ips.entries()) {
    const family = ipFamilies[index]
    if (family !== undefined && family !== `IPv${isIP(ip)}`)
      report.invalid(`clusterIPs[${index}]`, ip, `expected an ${family} value as indicated by \`ipFamilies[${index}]\``)
  }
}
export const serviceAddresses = fields<{ spec: Spec }>({ spec: addresses })

const notLoadBalancer = "may only be used when `type` is 'LoadBalancer'"
const onlyForLoadBalancers = forbidden(notLoadBalancer)
const loadBalancer: Rule<Spec> = (spec, report) => {
  const isBalanced = spec.type === 'LoadBalancer'
  if (!isBalanced) report.at('allocateLoadBalancerNodePorts', onlyForLoadBalancers, spec.allocateLoadBalancerNodePorts)
  if (spec.loadBalancerClass === undefined) return
  if (isBalanced) report.at('loadBalancerClass', qualifiedName, spec.loadBalancerClass)
  else report.at('loadBalancerClass', onlyForLoadBalancers, spec.loadBalancerClass)
}

const rangesAnnotation = 'service.beta.kubernetes.io/load-balancer-source-ranges'

/**
 * Source ranges of a load balancer, in the spec or in the older annotation. Whitespace around a range is accepted.
 */
const sourceRanges: Rule<Service, Service | undefined> = ({ metadata, spec }, report, old) => {
  const { type, loadBalancerSourceRanges: ranges = [] } = spec
  const annotation = metadata.annotations?.[rangesAnnotation]
  if (ranges.length === 0 && annotation === undefined) return
  const path = ranges.length > 0 ? 'spec.LoadBalancerSourceRanges' : `metadata.annotations[${rangesAnnotation}]`
  if (type !== 'LoadBalancer') report.forbidden(path, notLoadBalancer)
  for (const [index, range] of ranges.entries()) report.at(`${path}[${index}]`, legacyCidr, range.trim())
  if (ranges.length > 0 || annotation === old?.metadata.annotations?.[rangesAnnotation]) return
  const text = annotation?.trim() ?? ''
  if (text !== '') for (const range of text.split(',')) report.at(path, legacyCidr, range.trim())
}

const traffic: Rule<Service> = (service, report) => {
  const { type, externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort: healthPort = 0 } = service.spec
  report.at('trafficDistribution', distribution, service.spec.trafficDistribution)
  if (isExternallyAccessible(service)) report.at('externalTrafficPolicy', requiredPolicy, externalTrafficPolicy)
  else if (externalTrafficPolicy)
    report.invalid('externalTrafficPolicy', externalTrafficPolicy, 'may only be set for externally-accessible services')
  if (!needsHealthCheckPort(service) && healthPort !== 0)
    report.invalid(
      'healthCheckNodePort',
      healthPort,
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    )
  if (healthPort !== 0) report.at('healthCheckNodePort', portNumber, healthPort)
  report.at('internalTrafficPolicy', policy, internalTrafficPolicy)
  if (internalTrafficPolicy === undefined && type !== 'ExternalName' && types.includes(type ?? ''))
    report.required('internalTrafficPolicy')
}
const distribution = oneOf(['PreferClose', 'PreferSameZone', 'PreferSameNode'])
const requiredPolicy = required(policy)

const ofType: Rule<Service> = (service, report) => {
  const { spec } = service
  const headless = isHeadless(service)
  if (portsOf(service).length === 0 && !headless && spec.type !== 'ExternalName') report.required('ports')
  if (spec.type === 'ExternalName') report.check(externalNameSpec, spec)
  else if (headless && (spec.type === 'LoadBalancer' || spec.type === 'NodePort'))
    report.invalid('clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`)
}

const specRule = all<Spec, Service>(
  (_, report, service) => report.check(ofType, service),
  fields<Spec, Service>({
    ports: each(port),
    selector: labels,
    sessionAffinity: required(oneOf(['ClientIP', 'None'])),
  }),
  session,
  addresses,
  fields<Spec>({
    externalIPs: each(firstOf<string>(legacyIp, endpointIp)),
    type: required(oneOf(types)),
    ports: each(repeatedPort),
  }),
  when(({ type }) => type === 'ClusterIP', fields({ ports: each(withoutNodePort) })),
)

/** A Service, except for errors found during allocation. */
export const serviceRule: Rule<Service, Service | undefined> = (service, report, old) => {
  report.at('spec', specRule, service.spec, service)
  sourceRanges(service, report, old)
  report.at('spec', loadBalancer, service.spec)
  report.at('spec', traffic, service)
}

/** The immutable fields: the primary address, the health check port and the load balancer class. */
export const serviceChange: Rule<Service, Service> = (service, report, old) => {
  const [{ spec }, { spec: before }] = [service, old]
  const [ip, oldIp] = [spec.clusterIPs?.[0], before.clusterIPs?.[0]]
  if (before.type !== 'ExternalName' && spec.type !== 'ExternalName' && oldIp !== undefined && oldIp !== ip)
    report.invalid(
      'spec.clusterIPs[0]',
      spec.clusterIPs ?? [],
      spec.clusterIPs?.length ? 'may not change once set' : 'primary clusterIP can not be unset',
    )
  const needsPort = needsHealthCheckPort(old) && needsHealthCheckPort(service)
  if (needsPort && spec.healthCheckNodePort !== before.healthCheckNodePort)
    report.forbidden('spec.healthCheckNodePort', fieldImmutable)
  const { loadBalancerClass = null } = spec
  if (spec.type !== 'LoadBalancer' || before.type !== 'LoadBalancer') return
  if (loadBalancerClass !== (before.loadBalancerClass ?? null))
    report.invalid('spec.loadBalancerClass', loadBalancerClass, 'may not change once set')
}

/** True if the Service is valid by itself. Only then are addresses and ports allocated. */
export function isValidService(service: Service): boolean {
  return (
    causesOf(serviceRule, '', service, undefined).length === 0 &&
    (service.spec.clusterIPs ?? []).every((ip) => ip === 'None' || isIP(ip) !== 0)
  )
}
