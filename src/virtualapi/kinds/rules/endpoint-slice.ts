// EndpointSlices: part of the addresses behind a Service, with their ports and conditions.
import { isDeepStrictEqual } from 'node:util'
import type {
  DiscoveryV1EndpointPort,
  V1Endpoint,
  V1EndpointHints,
  V1EndpointSlice,
  V1ForNode,
  V1ForZone,
} from '@kubernetes/client-node'
import { dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  label,
  labels,
  labelValue,
  protocols,
  qualifiedName,
  subdomain,
} from '#virtualapi/kinds/validation/basic-rules.ts'
import { endpointIp, ipErrors, legacyIp, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  all,
  causesOf,
  changes,
  each,
  fields,
  firstOf,
  immutable,
  maxItems,
  oneOf,
  optional,
  required,
  text,
  unique,
  validating,
  validatingChange,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type Slice = Data<V1EndpointSlice>
type Endpoint = Omit<Data<V1Endpoint>, 'addresses'> & { addresses?: readonly string[] | null }
interface Context {
  readonly addressType: string
}

const maxAddresses = 100
const maxTopologyLabels = 16
const maxHints = maxItems(8)
/** Controllers that write only canonical addresses; as upstream, there are no warnings about their slices. */
const canonicalWriters = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']

const port = fields<Data<DiscoveryV1EndpointPort>>({
  name: (name = '', report) => {
    if (name !== '') report.check(label, name)
    report.check(distinct, name)
  },
  protocol: required(oneOf(protocols)),
  appProtocol: optional(qualifiedName),
})
const distinct = unique<string>()

/** A domain name of at least two parts. */
const domain = required((name: string, report) => {
  const bare = name.replace(/\.$/, '')
  const wrong = dns1123SubdomainErrors(bare)
  if (wrong.length > 0) {
    report.invalid('', bare, wrong.join(','))
    return
  }
  const parts = bare.split('.')
  if (parts.length < 2) {
    report.invalid('', bare, 'should be a domain with at least two segments separated by dots')
    return
  }
  const long = parts.find((part) => dns1123LabelErrors(part).length > 0)
  if (long !== undefined) report.invalid('', long, dns1123LabelErrors(long).join(','))
})

/** An address of the family. As upstream, an error about the family has the path of the list. */
const addressOf = (family: 4 | 6, form: Rule<string>): Rule<string> =>
  firstOf<string>(form, (address, report) => {
    if (tryIp(address)?.family !== family) report.invalid('..', address, `must be an IPv${family} address`)
    report.check(endpointIp, address)
  })
const addressRules: Readonly<Record<string, Rule<string>>> = {
  FQDN: domain,
  IPv4: addressOf(4, legacyIp),
  IPv6: addressOf(6, text(ipErrors)),
}

const addresses: Rule<Endpoint['addresses'], Context> = (list, report, { addressType }) => {
  if (!list?.length) {
    report.required('', 'must contain at least 1 address')
    return
  }
  if (list.length > maxAddresses) report.tooMany('', list.length, maxAddresses)
  const rule = Object.hasOwn(addressRules, addressType) ? addressRules[addressType] : undefined
  if (rule !== undefined) report.each(list, rule)
}

const zones = firstOf<readonly Data<V1ForZone>[] | undefined>(
  maxHints,
  each(fields<Data<V1ForZone>>({ name: all<string>(unique(), labelValue) })),
)
const nodes = firstOf<readonly Data<V1ForNode>[] | undefined>(
  maxHints,
  each(fields<Data<V1ForNode>>({ name: all<string>(unique(), subdomain) })),
)
/** As upstream, forNodes is not validated if forZones is too long. */
const hints: Rule<Data<V1EndpointHints>> = ({ forZones = [], forNodes }, report) => {
  report.at('forZones', zones, forZones)
  if (causesOf(maxHints, '', forZones).length === 0) report.at('forNodes', nodes, forNodes)
}

const endpoint = fields<Endpoint, Context>({
  addresses,
  nodeName: optional(subdomain),
  deprecatedTopology: (topology = {}, report) => {
    const count = Object.keys(topology).length
    if (count > maxTopologyLabels) report.tooMany('', count, maxTopologyLabels)
    report.check(labels, topology)
  },
  hostname: optional(label),
  hints: optional(hints),
})
const endpoints = firstOf<readonly Endpoint[], Context>(maxItems(1000), each(endpoint))

const endpointsOf = (object: KubeObject): Endpoint[] => (object['endpoints'] as Endpoint[] | null | undefined) ?? []

const slice: Rule<KubeObject, KubeObject | undefined> = (object, report, old) => {
  report.check(typeAndPorts, object as unknown as Slice)
  const before = report.causes.length
  report.at('endpoints', endpoints, endpointsOf(object), object as unknown as Slice)
  // Wrong endpoints may stay.
  if (report.causes.length > before && old && isDeepStrictEqual(endpointsOf(object), endpointsOf(old)))
    report.causes.length = before
}
const typeAndPorts = fields<Slice>({
  addressType: required(oneOf(['FQDN', 'IPv4', 'IPv6'])),
  ports: firstOf<Slice['ports']>(maxItems(20_000), each(port)),
})

export const endpointSliceRules: KindRules = {
  prepareForCreate: (object) => dropTopology(object, undefined),
  prepareForUpdate: (object, old) => dropTopology(object, old),
  countsChange({ metadata: { labels: own }, ...next }, { metadata: { labels: before }, ...old }) {
    return !isDeepStrictEqual(next, old) || !isDeepStrictEqual(own ?? {}, before ?? {})
  },
  validate: validating<KubeObject>(slice),
  validateChange: validatingChange(changes<Slice>({ addressType: immutable() })),
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
