// Endpoints: the older form of EndpointSlices.
import { isDeepStrictEqual } from 'node:util'
import type { CoreV1EndpointPort, V1EndpointAddress, V1Endpoints } from '@kubernetes/client-node'
import { fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { endpointIpCauses, legacyIpCauses } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  label,
  portNumber,
  protocols,
  qualifiedName,
  requiredOneOf,
  subdomain,
} from '#virtualapi/kinds/validation/values.ts'
import { ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'

type Subsets = NonNullable<Data<V1Endpoints>['subsets']>

const subsetsOf = (object: KubeObject): Subsets => (object as unknown as Data<V1Endpoints>).subsets ?? []

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
  validate: (object, old) =>
    old !== undefined && isDeepStrictEqual(subsetsOf(object), subsetsOf(old))
      ? []
      : subsetsOf(object).flatMap((subset, index) => subsetCauses(`subsets[${index}]`, subset)),
}

function subsetCauses(path: string, subset: Subsets[number]): StatusCause[] {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset
  return [
    ...(addresses.length === 0 && notReadyAddresses.length === 0
      ? [fieldRequired(path, 'must specify `addresses` or `notReadyAddresses`')]
      : []),
    ...addresses.flatMap((address, index) => addressCauses(`${path}.addresses[${index}]`, address)),
    ...notReadyAddresses.flatMap((address, index) => addressCauses(`${path}.notReadyAddresses[${index}]`, address)),
    ...ports.flatMap((port, index) => portCauses(`${path}.ports[${index}]`, port, { needsName: ports.length > 1 })),
  ]
}

function addressCauses(path: string, { ip, hostname, nodeName }: Data<V1EndpointAddress>): StatusCause[] {
  return [
    ...legacyIpCauses(`${path}.ip`, ip),
    ...(hostname ? label(`${path}.hostname`, hostname) : []),
    ...(nodeName === undefined ? [] : subdomain(`${path}.nodeName`, nodeName)),
    ...endpointIpCauses(`${path}.ip`, ip),
  ]
}

function portCauses(
  path: string,
  { name, port, protocol, appProtocol }: Data<CoreV1EndpointPort>,
  { needsName }: { needsName: boolean },
): StatusCause[] {
  return [
    ...(name ? label(`${path}.name`, name) : needsName ? [fieldRequired(`${path}.name`)] : []),
    ...portNumber(`${path}.port`, port),
    ...requiredOneOf(`${path}.protocol`, protocol, protocols),
    ...(appProtocol === undefined ? [] : qualifiedName(`${path}.appProtocol`, appProtocol)),
  ]
}
