// Kinds that report: EndpointSlices, Endpoints, Nodes, RuntimeClasses.
import { isIP } from 'node:net'
import type { V1EndpointSlice, V1NodeSpec, V1NodeStatus, V1Endpoints } from '@kubernetes/client-node'
import {
  dns1123LabelErrors,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  labelValueErrors,
} from '../../../../apimachinery/field/index.ts'
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { nonNegativeQuantity } from '../validation/resources.ts'
import { taintEffects } from '../validation/scheduling.ts'
import {
  cidr,
  fieldImmutable,
  ipAddress,
  label,
  portNumber,
  protocols,
  qualifiedName,
  requiredOneOf,
  routableIp,
  subdomain,
} from '../validation/values.ts'

type Slice = Data<V1EndpointSlice> & KubeObject

export const endpointSliceRules: KindRules = {
  countsChange({ metadata: { labels }, ...next }, { metadata: { labels: before }, ...old }) {
    return !isDeepStrictEqual(next, old) || !isDeepStrictEqual(labels ?? {}, before ?? {})
  },
  validate(object) {
    const slice = object as unknown as Slice
    const { addressType } = slice
    const endpoints = (slice.endpoints as Slice['endpoints'] | null) ?? []
    const names = new Set<string>()
    const causes = requiredOneOf('addressType', addressType, ['FQDN', 'IPv4', 'IPv6'])
    for (const [index, { name = '', protocol, port }] of (slice.ports ?? []).entries()) {
      const at = `ports[${index}]`
      if (name !== '') causes.push(...dns1123LabelErrors(name).map((text) => fieldInvalid(`${at}.name`, name, text)))
      if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
      names.add(name)
      causes.push(...requiredOneOf(`${at}.protocol`, protocol, protocols))
      if (port !== undefined) causes.push(...portNumber(`${at}.port`, port))
    }
    for (const [index, { addresses }] of endpoints.entries()) {
      const at = `endpoints[${index}].addresses`
      const list = (addresses as string[] | null) ?? []
      if (list.length === 0) causes.push(fieldRequired(at, 'must contain at least 1 address'))
      for (const [i, address] of list.entries()) causes.push(...addressCauses(at, i, address, addressType))
    }
    return causes
  },
  validateChange(object, old) {
    const { addressType } = object as unknown as Slice
    return addressType === old['addressType'] ? [] : [fieldInvalid('addressType', addressType, fieldImmutable)]
  },
}

function addressCauses(path: string, index: number, address: string, type: string): StatusCause[] {
  const at = `${path}[${index}]`
  if (type === 'FQDN') return subdomain(at, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const wrong = ipAddress(at, address)
  if (wrong.length > 0) return wrong
  const family = type === 'IPv4' ? 4 : 6
  return [
    ...(isIP(address) === family ? [] : [fieldInvalid(path, address, `must be an ${type} address`)]),
    ...routableIp(at, address),
  ]
}

function nodeStatusCauses({ status }: Node): StatusCause[] {
  const seen = new Set<string>()
  const { addresses = [], capacity = {}, allocatable = {} } = status
  const repeated = addresses.flatMap(({ type, address }, index) => {
    const shown = JSON.stringify({ Type: type, Address: address })
    if (seen.has(shown)) return [duplicateText(`status.addresses[${index}]`, shown)]
    seen.add(shown)
    return []
  })
  return [
    ...repeated,
    ...Object.entries(capacity).flatMap(([name, text]) => nonNegativeQuantity(`status.capacity.${name}`, text)),
    ...Object.entries(allocatable).flatMap(([name, text]) => nonNegativeQuantity(`status.allocatable.${name}`, text)),
  ]
}

function duplicateText(field: string, shown: string): StatusCause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown}`, field }
}

export const endpointsRules: KindRules = {
  validate(object) {
    const { subsets = [] } = object as unknown as Data<V1Endpoints>
    return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }, index) => {
      const at = `subsets[${index}]`
      const causes: StatusCause[] = []
      if (addresses.length === 0 && notReadyAddresses.length === 0)
        causes.push(fieldRequired(at, 'must specify `addresses` or `notReadyAddresses`'))
      for (const [member, list] of Object.entries({ addresses, notReadyAddresses }))
        for (const [i, { ip }] of list.entries()) causes.push(...endpointIpCauses(`${at}.${member}[${i}].ip`, ip))
      for (const [i, { name, port, protocol }] of ports.entries()) {
        if (name) causes.push(...label(`${at}.ports[${i}].name`, name))
        else if (ports.length > 1) causes.push(fieldRequired(`${at}.ports[${i}].name`))
        causes.push(
          ...portNumber(`${at}.ports[${i}].port`, port),
          ...requiredOneOf(`${at}.ports[${i}].protocol`, protocol, protocols),
        )
      }
      return causes
    })
  },
}

function endpointIpCauses(path: string, ip: string): StatusCause[] {
  const wrong = ipAddress(path, ip)
  // Upstream asks twice.
  return wrong.length > 0 ? [...wrong, fieldInvalid(path, ip, 'must be a valid IP address')] : routableIp(path, ip)
}

const notReady = 'node.kubernetes.io/not-ready'

interface Node extends KubeObject {
  spec: Data<V1NodeSpec>
  status: Data<V1NodeStatus>
}

export const nodeRules: KindRules = {
  bornWithStatus: true,
  beforeDefaults(object) {
    const { spec, status } = object as Partial<Node>
    if (spec !== undefined) {
      const { podCIDR, podCIDRs = [] } = spec
      if (podCIDR && podCIDRs.length === 0) spec.podCIDRs = [podCIDR]
      else if (podCIDRs[0] !== undefined && podCIDR !== podCIDRs[0]) spec.podCIDR = podCIDRs[0]
    }
    if (status?.capacity !== undefined && status.allocatable === undefined) status.allocatable = { ...status.capacity }
  },
  prepareForCreate(object) {
    const { spec, status } = object as Node
    delete spec.configSource
    delete status.config
    const { taints = [] } = spec
    // Who makes nodes ready takes it away.
    if (!taints.some(({ key, effect }) => key === notReady && effect === 'NoSchedule'))
      spec.taints = [...taints, { key: notReady, effect: 'NoSchedule' }]
  },
  validatePart: (object) => nodeStatusCauses(object as Node),
  validate(object) {
    const { taints = [], podCIDRs = [] } = object['spec'] as Data<V1NodeSpec>
    return [
      ...taints.flatMap(({ key, value = '', effect }, index) => {
        const at = `metadata.taints[${index}]`
        return [
          ...qualifiedName(`${at}.key`, key),
          ...labelValueErrors(value).map((text) => fieldInvalid(`${at}.value`, value, text)),
          ...requiredOneOf(`${at}.effect`, effect, taintEffects),
        ]
      }),
      ...podCIDRs.flatMap((range, index) => cidr(`spec.podCIDRs[${index}]`, range)),
      ...nodeStatusCauses(object as Node),
    ]
  },
  validateChange(object, old) {
    const next = object['spec'] as Data<V1NodeSpec>
    const before = old['spec'] as Data<V1NodeSpec>
    const causes: StatusCause[] = []
    if (before.providerID !== undefined && next.providerID !== before.providerID)
      causes.push(fieldForbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
    if (before.podCIDRs?.length && !isDeepStrictEqual(next.podCIDRs, before.podCIDRs))
      causes.push(fieldForbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
    return causes
  },
}

export const runtimeClassRules: KindRules = {
  validate: (object) => label('handler', (object['handler'] as string | undefined) ?? ''),
  validateChange: (object, old) =>
    object['handler'] === old['handler']
      ? []
      : [fieldInvalid('handler', (object['handler'] as string | undefined) ?? '', fieldImmutable)],
}
