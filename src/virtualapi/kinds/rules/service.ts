// Services: allocation of addresses and node ports, and cleanup when the type changes.
import { isIPv4 } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { fieldInvalid } from '#apimachinery/field/index.ts'
import { internalError, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import { causesOf, validating, validatingChange } from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'
import type { Allocation } from '#virtualapi/kinds/resources/allocation.ts'
import { allocationFor } from './service-allocation.ts'
import { isValidService, serviceAddresses, serviceChange, serviceRule } from './service-validation.ts'
import {
  hasSelector,
  isExternallyAccessible,
  isHeadless,
  mayHaveNodePorts,
  needsClusterIp,
  needsHealthCheckPort,
  needsNodePort,
  portsOf,
  type Service,
} from './service-types.ts'
import { loadBalancerWarnings, serviceWarnings } from './service-warnings.ts'

export const serviceRules: KindRules = {
  prepareForCreate(object, context) {
    const service = object as Service
    dropUnreadFields(service)
    alignClusterIps(service, undefined)
    refuseAddresses(service, undefined)
    // Allocate nothing for a Service that validation will refuse.
    if (isValidService(service)) allocate(service, undefined, context)
  },
  prepareForUpdate(object, old, context, subresource) {
    if (subresource !== '') return
    const service = object as Service
    const before = old as Service
    keepAllocated(service, before)
    dropFieldsOfOldType(service, before)
    dropUnreadFields(service)
    alignClusterIps(service, before)
    // As upstream, addresses are validated before anything else.
    refuseAddresses(service, before)
    if (isValidService(service) && causesOf(serviceChange, '', service, before).length === 0)
      allocate(service, before, context)
  },
  validate: validating(serviceRule),
  validateChange: validatingChange(serviceChange),
  warningsOf: (object) => serviceWarnings(object as Service),
  statusWarningsOf: ({ status }) => loadBalancerWarnings(status),
}

/** Upstream stores this field of an external name if it is valid, and leaves it out of all answers. */
function dropUnreadFields({ spec }: Service): void {
  const isValid = spec.internalTrafficPolicy === 'Cluster' || spec.internalTrafficPolicy === 'Local'
  if (spec.type === 'ExternalName' && isValid) delete spec.internalTrafficPolicy
}

/** Keeps clusterIP and the first of clusterIPs equal. */
function alignClusterIps({ spec }: Service, old: Service | undefined): void {
  if (old === undefined) {
    if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP]
    return
  }
  const cleared = old.spec.clusterIP !== undefined && spec.clusterIP === undefined
  if (cleared && isDeepStrictEqual(spec.clusterIPs, old.spec.clusterIPs)) delete spec.clusterIPs
  else if (spec.clusterIP !== old.spec.clusterIP && isDeepStrictEqual(spec.clusterIPs, old.spec.clusterIPs))
    spec.clusterIPs = spec.clusterIP === undefined ? [] : [spec.clusterIP]
  else if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP]
}

/** An update without the allocated values keeps the old ones. */
function keepAllocated(service: Service, old: Service): void {
  const { spec } = service
  if (needsClusterIp(service) && needsClusterIp(old)) {
    if (!spec.clusterIP && old.spec.clusterIP !== undefined) spec.clusterIP = old.spec.clusterIP
    if (!spec.clusterIPs?.length && old.spec.clusterIPs !== undefined) spec.clusterIPs = [...old.spec.clusterIPs]
  }
  if (needsNodePort(service) && needsNodePort(old)) keepNodePorts(service, old)
  if (needsHealthCheckPort(service) && needsHealthCheckPort(old) && old.spec.healthCheckNodePort !== undefined)
    spec.healthCheckNodePort ??= old.spec.healthCheckNodePort
}

function keepNodePorts(service: Service, old: Service): void {
  const before = new Map(portsOf(old).map(({ name = '', nodePort }) => [name, nodePort]))
  const used = new Set(portsOf(service).map(({ nodePort }) => nodePort))
  for (const port of portsOf(service)) {
    const nodePort = before.get(port.name ?? '')
    if (port.nodePort === undefined && nodePort !== undefined && !used.has(nodePort)) port.nodePort = nodePort
  }
}

function dropFieldsOfOldType(service: Service, old: Service): void {
  const { spec } = service
  if (needsClusterIp(old) && !needsClusterIp(service)) {
    if (isDeepStrictEqual(spec.clusterIPs, old.spec.clusterIPs) && spec.clusterIP === old.spec.clusterIP) {
      delete spec.clusterIP
      delete spec.clusterIPs
    }
    if (isDeepStrictEqual(spec.ipFamilies, old.spec.ipFamilies)) delete spec.ipFamilies
    if (spec.ipFamilyPolicy === old.spec.ipFamilyPolicy) delete spec.ipFamilyPolicy
    delete spec.internalTrafficPolicy
  }
  const nodePorts = (of: Service): (number | undefined)[] => portsOf(of).map(({ nodePort }) => nodePort)
  if (mayHaveNodePorts(old) && !mayHaveNodePorts(service) && isDeepStrictEqual(nodePorts(service), nodePorts(old)))
    for (const port of portsOf(service)) delete port.nodePort
  if (
    needsHealthCheckPort(old) &&
    !needsHealthCheckPort(service) &&
    spec.healthCheckNodePort === old.spec.healthCheckNodePort
  )
    delete spec.healthCheckNodePort
  if (
    old.spec.type === 'LoadBalancer' &&
    spec.type !== 'LoadBalancer' &&
    spec.allocateLoadBalancerNodePorts === old.spec.allocateLoadBalancerNodePorts
  )
    delete spec.allocateLoadBalancerNodePorts
  if (old.spec.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (spec.loadBalancerClass === old.spec.loadBalancerClass) delete spec.loadBalancerClass
    service['status'] = { loadBalancer: {} }
  }
  const samePolicy = spec.externalTrafficPolicy === old.spec.externalTrafficPolicy
  if (isExternallyAccessible(old) && !isExternallyAccessible(service) && samePolicy) delete spec.externalTrafficPolicy
}

/** Allocates missing addresses and ports. Throws 422 if a requested value is not available. */
function allocate(service: Service, old: Service | undefined, context: RequestContext): void {
  const { metadata } = service
  const by = `${metadata.namespace ?? ''}/${metadata.name ?? ''}`
  const { objects, now, dryRun } = context
  const allocation = (context.allocationFor ?? allocationFor)(objects, { by, now, dryRun })
  if (needsClusterIp(service)) {
    fillFamilies(service, old)
    if (!isHeadless(service)) allocateIp(service, old, allocation)
  }
  if (mayHaveNodePorts(service)) allocateNodePorts(service, old, allocation)
  if (needsHealthCheckPort(service)) allocateHealthCheckPort(service, old, allocation)
}

function refuseAddresses(service: Service, old: Service | undefined): void {
  if (!needsClusterIp(service)) return
  refuse(service, causesOf(serviceAddresses, '', service))
  refuse(service, familyCauses(service, old))
}

function refuse({ metadata }: Service, causes: StatusCause[]): void {
  if (causes.length > 0) throw invalid({ group: '', kind: 'Service' }, metadata.name ?? '', causes)
}

/** Errors of IP families, which a real server finds before it validates the rest. */
function familyCauses(service: Service, old: Service | undefined): StatusCause[] {
  if (isHeadless(service) && !hasSelector(service)) return []
  const { ipFamilyPolicy: policy = old?.spec.ipFamilyPolicy ?? 'SingleStack', ipFamilies = [] } = service.spec
  const wrong = (text: string): StatusCause => fieldInvalid('spec.ipFamilyPolicy', policy, text)
  if (policy === 'SingleStack' && ipFamilies.length === 2)
    return [wrong("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")]
  return [
    ...ipFamilies.flatMap((family, index) =>
      family === 'IPv4' ? [] : [fieldInvalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster')],
    ),
    ...(policy === 'RequireDualStack' ? [wrong('this cluster is not configured for dual-stack services')] : []),
  ]
}

/** Sets IP families. Services of a logical cluster are IPv4 only, except headless ones without a selector. */
function fillFamilies(service: Service, old: Service | undefined): void {
  const { spec } = service
  const headlessWithoutSelector = isHeadless(service) && !hasSelector(service)
  // An update that does not set the policy keeps the old one.
  spec.ipFamilyPolicy ??= old?.spec.ipFamilyPolicy ?? (headlessWithoutSelector ? 'RequireDualStack' : 'SingleStack')
  if (headlessWithoutSelector) {
    const [first = 'IPv4', second] = spec.ipFamilies ?? []
    const families = second === undefined ? [first] : [first, second]
    if (families.length < 2 && spec.ipFamilyPolicy !== 'SingleStack') families.push(first === 'IPv4' ? 'IPv6' : 'IPv4')
    spec.ipFamilies = families
    return
  }
  spec.ipFamilies ??= ['IPv4']
}

function allocateIp(service: Service, old: Service | undefined, allocation: Allocation): void {
  const { spec } = service
  const [wanted] = spec.clusterIPs ?? []
  if (wanted !== undefined && wanted === old?.spec.clusterIPs?.[0]) return
  if (wanted === undefined || wanted === '') {
    const ip = allocation.nextIp()
    if (ip === undefined) throw internalError('failed to allocate a serviceIP: range is full')
    Object.assign(spec, { clusterIP: ip, clusterIPs: [ip] })
    return
  }
  // Text that is not an IPv4 address is left to validation.
  const reason = isIPv4(wanted) ? allocation.takeIp(wanted) : undefined
  if (reason !== undefined)
    refuse(service, [
      fieldInvalid('spec.clusterIPs', spec.clusterIPs ?? [], `failed to allocate IP ${wanted}: ${reason}`),
    ])
  if (isIPv4(wanted)) spec.clusterIP = wanted
}

function allocateNodePorts(service: Service, old: Service | undefined, allocation: Allocation): void {
  const before = new Set(old === undefined ? [] : portsOf(old).map(({ nodePort }) => nodePort))
  const byPort = new Map<number, number>()
  const taken = new Set<number>()
  for (const [index, port] of portsOf(service).entries()) {
    // TCP and UDP on one port share the node port.
    const shared = byPort.get(port.port)
    if (port.nodePort === undefined) {
      if (!needsNodePort(service)) continue
      const nodePort = shared ?? allocation.nextPort()
      if (nodePort === undefined) throw internalError('failed to allocate a nodePort: range is full')
      port.nodePort = nodePort
    } else if (!before.has(port.nodePort) && port.nodePort !== shared) {
      const reason = taken.has(port.nodePort)
        ? 'provided port is already allocated'
        : allocation.takePort(port.nodePort)
      if (reason !== undefined) refuse(service, [fieldInvalid(`spec.ports[${index}].nodePort`, port.nodePort, reason)])
    }
    taken.add(port.nodePort)
    byPort.set(port.port, port.nodePort)
  }
}

function allocateHealthCheckPort({ spec }: Service, old: Service | undefined, allocation: Allocation): void {
  if (spec.healthCheckNodePort === undefined) {
    const port = allocation.nextPort()
    if (port === undefined) throw internalError('failed to allocate a HealthCheck NodePort : range is full')
    spec.healthCheckNodePort = port
  } else if (old === undefined || !needsHealthCheckPort(old)) {
    // An existing port is immutable, which validation reports.
    const reason = allocation.takePort(spec.healthCheckNodePort)
    if (reason !== undefined)
      throw internalError(`failed to allocate requested HealthCheck NodePort ${spec.healthCheckNodePort}: ${reason}`)
  }
}
