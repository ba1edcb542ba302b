// Endpoints: the older form of EndpointSlices.
import { isDeepStrictEqual } from 'node:util'
import type { CoreV1EndpointPort, V1EndpointAddress, V1Endpoints, V1EndpointSubset } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, portNumber, protocols, qualifiedName, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { endpointIp, legacyIp } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  all,
  each,
  fields,
  given,
  oneOf,
  optional,
  required,
  validating,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type Endpoints = Pick<Data<V1Endpoints>, 'subsets'>
type Subset = Data<V1EndpointSubset>
type Port = Data<CoreV1EndpointPort>

const subsetsOf = (object: KubeObject): readonly Subset[] => (object as Endpoints).subsets ?? []

const address = fields<Data<V1EndpointAddress>>({ ip: legacyIp, hostname: given(label), nodeName: optional(subdomain) })
const addresses = each(all<Data<V1EndpointAddress>>(address, fields({ ip: endpointIp })))

const port = fields<Port>({
  name: given(label),
  port: portNumber,
  protocol: required(oneOf(protocols)),
  appProtocol: optional(qualifiedName),
})
/** A port of a subset with several ones. */
const namedPort = all<Port>(({ name }, report) => {
  if (!name) report.required('name')
}, port)

const subset = all<Subset>(
  ({ addresses: ready, notReadyAddresses: others }, report) => {
    if (!ready?.length && !others?.length) report.required('', 'must specify `addresses` or `notReadyAddresses`')
  },
  fields<Subset>({
    addresses,
    notReadyAddresses: addresses,
    ports: (list = [], report) => report.each(list, list.length > 1 ? namedPort : port),
  }),
)
const subsets = each(subset)

export const endpointsRules: KindRules = {
  warningsOf(object) {
    // The endpoints controller writes only canonical addresses.
    if (object.metadata.labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller') return []
    return subsetsOf(object).flatMap(({ addresses = [], notReadyAddresses = [] }, index) => [
      ...addresses.flatMap(({ ip }, i) => ipWarnings(`subsets[${index}].addresses[${i}].ip`, ip)),
      ...notReadyAddresses.flatMap(({ ip }, i) => ipWarnings(`subsets[${index}].notReadyAddresses[${i}].ip`, ip)),
    ])
  },
  // Unchanged subsets are not validated again.
  validate: validating<Endpoints>((object, report, old) => {
    if (!old || !isDeepStrictEqual(object.subsets ?? [], old.subsets ?? []))
      report.at('subsets', subsets, object.subsets)
  }),
}
