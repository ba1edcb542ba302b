// EndpointSlices: part of the addresses behind a Service, with their ports and conditions.
import { isDeepStrictEqual } from 'node:util'
import type { V1Endpoint, V1EndpointHints, V1EndpointSlice } from '@kubernetes/client-node'
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  fieldDuplicate,
  fieldInvalid,
  fieldRequired,
  fieldTooMany,
  labelValueErrors,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { endpointIpCauses, ipErrors, legacyIpCauses, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  fieldImmutable,
  label,
  labels,
  protocols,
  qualifiedName,
  requiredOneOf,
  subdomain,
} from '#virtualapi/kinds/validation/values.ts'
import { ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'

type Slice = Data<V1EndpointSlice> & KubeObject
type Endpoint = Omit<Data<V1Endpoint>, 'addresses'> & { addresses?: readonly string[] | null }

const maxEndpoints = 1000
const maxAddresses = 100
const maxPorts = 20_000
const maxTopologyLabels = 16
const maxHints = 8
/** Controllers that write only canonical addresses; as upstream, there are no warnings about their slices. */
const canonicalWriters = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']

const endpointsOf = (object: KubeObject): Endpoint[] => (object['endpoints'] as Endpoint[] | null | undefined) ?? []

export const endpointSliceRules: KindRules = {
  prepareForCreate: (object) => dropTopology(object, undefined),
  prepareForUpdate: (object, old) => dropTopology(object, old),
  countsChange({ metadata: { labels: own }, ...next }, { metadata: { labels: before }, ...old }) {
    return !isDeepStrictEqual(next, old) || !isDeepStrictEqual(own ?? {}, before ?? {})
  },
  validate(object, old) {
    const { addressType, ports } = object as unknown as Slice
    const wrong = endpointsCauses('endpoints', endpointsOf(object), addressType)
    const unchanged = wrong.length > 0 && old !== undefined && isDeepStrictEqual(endpointsOf(object), endpointsOf(old))
    return [
      ...requiredOneOf('addressType', addressType, ['FQDN', 'IPv4', 'IPv6']),
      ...portsCauses('ports', ports),
      ...(unchanged ? [] : wrong),
    ]
  },
  validateChange(object, old) {
    const { addressType } = object as unknown as Slice
    return addressType === old['addressType'] ? [] : [fieldInvalid('addressType', addressType, fieldImmutable)]
  },
  warningsOf: (object, old) => [
    ...(old === undefined && object['addressType'] === 'FQDN'
      ? ['spec.addressType: FQDN endpoints are deprecated']
      : []),
    ...(canonicalWriters.includes(object.metadata.labels?.['endpointslice.kubernetes.io/managed-by'] ?? '')
      ? []
      : endpointsOf(object).flatMap(({ addresses }, index) =>
          (addresses ?? []).flatMap((ip, i) => ipWarnings(`endpoints[${index}].addresses[${i}]`, ip)),
        )),
  ],
}

/** deprecatedTopology may only stay while the endpoints are unchanged. */
function dropTopology(object: KubeObject, old: KubeObject | undefined): void {
  const endpoints = endpointsOf(object)
  if (!endpoints.some(({ deprecatedTopology }) => deprecatedTopology !== undefined)) return
  if (old !== undefined && isDeepStrictEqual(endpoints, endpointsOf(old))) return
  for (const endpoint of endpoints) delete endpoint.deprecatedTopology
}

function portsCauses(path: string, given: Slice['ports'] | null): StatusCause[] {
  const ports = given ?? []
  if (ports.length > maxPorts) return [fieldTooMany(path, ports.length, maxPorts)]
  const names = new Set<string>()
  return ports.flatMap(({ name = '', protocol, appProtocol }, index) => {
    const at = `${path}[${index}]`
    const causes = name === '' ? [] : label(`${at}.name`, name)
    if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    names.add(name)
    return [
      ...causes,
      ...requiredOneOf(`${at}.protocol`, protocol, protocols),
      ...(appProtocol === undefined ? [] : qualifiedName(`${at}.appProtocol`, appProtocol)),
    ]
  })
}

function endpointsCauses(path: string, endpoints: readonly Endpoint[], type: string): StatusCause[] {
  if (endpoints.length > maxEndpoints) return [fieldTooMany(path, endpoints.length, maxEndpoints)]
  return endpoints.flatMap((endpoint, index) => {
    const at = `${path}[${index}]`
    const { nodeName, hostname, hints, deprecatedTopology: topology = {} } = endpoint
    const count = Object.keys(topology).length
    return [
      ...addressesCauses(`${at}.addresses`, endpoint.addresses ?? [], type),
      ...(nodeName === undefined ? [] : subdomain(`${at}.nodeName`, nodeName)),
      ...(count > maxTopologyLabels ? [fieldTooMany(`${at}.deprecatedTopology`, count, maxTopologyLabels)] : []),
      ...labels(`${at}.deprecatedTopology`, topology),
      ...(hostname === undefined ? [] : label(`${at}.hostname`, hostname)),
      ...(hints === undefined ? [] : hintsCauses(`${at}.hints`, hints)),
    ]
  })
}

function addressesCauses(path: string, addresses: readonly string[], type: string): StatusCause[] {
  const causes: StatusCause[] = []
  if (addresses.length === 0) causes.push(fieldRequired(path, 'must contain at least 1 address'))
  else if (addresses.length > maxAddresses) causes.push(fieldTooMany(path, addresses.length, maxAddresses))
  return [
    ...causes,
    ...addresses.flatMap((address, index) => {
      const at = `${path}[${index}]`
      if (type === 'FQDN') return domainCauses(at, address)
      if (type !== 'IPv4' && type !== 'IPv6') return []
      const wrong =
        type === 'IPv4' ? legacyIpCauses(at, address) : ipErrors(address).map((text) => fieldInvalid(at, address, text))
      if (wrong.length > 0) return wrong
      const family = type === 'IPv4' ? 4 : 6
      return [
        ...(tryIp(address)?.family === family ? [] : [fieldInvalid(path, address, `must be an ${type} address`)]),
        ...endpointIpCauses(at, address),
      ]
    }),
  ]
}

/** A domain name of at least two parts. */
function domainCauses(path: string, name: string): StatusCause[] {
  if (name === '') return [fieldRequired(path)]
  const bare = name.replace(/\.$/, '')
  const wrong = dns1123SubdomainErrors(bare)
  if (wrong.length > 0) return [fieldInvalid(path, bare, wrong.join(','))]
  const parts = bare.split('.')
  if (parts.length < 2)
    return [fieldInvalid(path, bare, 'should be a domain with at least two segments separated by dots')]
  const long = parts.find((part) => dns1123LabelErrors(part).length > 0)
  return long === undefined ? [] : [fieldInvalid(path, long, dns1123LabelErrors(long).join(','))]
}

/** Validates topology hints. As upstream, forNodes is not validated if forZones is too long. */
function hintsCauses(path: string, { forZones = [], forNodes = [] }: Data<V1EndpointHints>): StatusCause[] {
  const zones = namesCauses(`${path}.forZones`, forZones, labelValueErrors)
  if (forZones.length > maxHints) return zones
  return [...zones, ...namesCauses(`${path}.forNodes`, forNodes, dns1123SubdomainErrors)]
}

function namesCauses(
  path: string,
  hints: readonly { readonly name: string }[],
  errors: (name: string) => string[],
): StatusCause[] {
  if (hints.length > maxHints) return [fieldTooMany(path, hints.length, maxHints)]
  const names = new Set<string>()
  return hints.flatMap(({ name }, index) => {
    const at = `${path}[${index}].name`
    const causes = names.has(name) ? [fieldDuplicate(at, name)] : []
    names.add(name)
    return [...causes, ...errors(name).map((text) => fieldInvalid(at, name, text))]
  })
}
