// NetworkPolicies: allowed traffic of the pods they select.
import type { V1IPBlock, V1NetworkPolicyPeer, V1NetworkPolicyPort, V1NetworkPolicySpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { isStrictlyInside, legacyCidrCauses, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import { labelSelectorCauses } from '#virtualapi/kinds/validation/label-selector.ts'
import { oneOf, portNumber, portOrName } from '#virtualapi/kinds/validation/values.ts'
import { cidrWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'

type Spec = Data<V1NetworkPolicySpec>
type Peers = readonly Data<V1NetworkPolicyPeer>[] | undefined
type Ports = readonly Data<V1NetworkPolicyPort>[] | undefined

const types = ['Ingress', 'Egress']
const specOf = (object: KubeObject): Spec => object['spec'] as Spec

export const networkPolicyRules: KindRules = {
  warningsOf(object) {
    const { ingress = [], egress = [] } = specOf(object)
    return [
      ...ingress.flatMap(({ from }, i) => blockWarnings(`spec.ingress[${i}].from`, from)),
      ...egress.flatMap(({ to }, i) => blockWarnings(`spec.egress[${i}].to`, to)),
    ]
  },
  validatesUpdateTwice: true,
  validate(object, old) {
    const { podSelector, ingress = [], egress = [], policyTypes = [] } = specOf(object)
    const known = old === undefined ? new Set<string>() : blocksOf(specOf(old))
    const ruleCauses = (path: string, ports: Ports, member: string, peers: Peers): StatusCause[] => [
      ...(ports ?? []).flatMap((port, i) => portCauses(`${path}.ports[${i}]`, port)),
      ...(peers ?? []).flatMap((peer, i) => peerCauses(`${path}.${member}[${i}]`, peer, known)),
    ]
    return [
      ...labelSelectorCauses('spec.podSelector', podSelector),
      ...ingress.flatMap(({ ports, from }, i) => ruleCauses(`spec.ingress[${i}]`, ports, 'from', from)),
      ...egress.flatMap(({ ports, to }, i) => ruleCauses(`spec.egress[${i}]`, ports, 'to', to)),
      ...(policyTypes.length > types.length
        ? [fieldInvalid('spec.policyTypes', policyTypes, 'may not specify more than two policyTypes')]
        : policyTypes.flatMap((type, index) => oneOf(`spec.policyTypes[${index}]`, type, types))),
    ]
  },
}

function blockWarnings(path: string, peers: Peers): string[] {
  return (peers ?? []).flatMap(({ ipBlock }, index) => {
    const at = `${path}[${index}].ipBlock`
    if (ipBlock === undefined) return []
    const except = ipBlock.except ?? []
    return [
      ...cidrWarnings(`${at}.cidr`, ipBlock.cidr),
      ...except.flatMap((cidr, i) => cidrWarnings(`${at}.except[${i}]`, cidr)),
    ]
  })
}

/** The CIDRs of the stored object; they are not validated again. */
function blocksOf({ ingress = [], egress = [] }: Spec): Set<string> {
  const peers = [...ingress.flatMap(({ from }) => from ?? []), ...egress.flatMap(({ to }) => to ?? [])]
  return new Set(peers.flatMap(({ ipBlock }) => (ipBlock ? [ipBlock.cidr, ...(ipBlock.except ?? [])] : [])))
}

function portCauses(path: string, { port, protocol, endPort }: Data<V1NetworkPolicyPort>): StatusCause[] {
  const causes = oneOf(`${path}.protocol`, protocol, ['TCP', 'UDP', 'SCTP'])
  const at = `${path}.endPort`
  if (port !== undefined) causes.push(...portOrName(`${path}.port`, port))
  if (endPort === undefined) return causes
  if (port === undefined) causes.push(fieldInvalid(at, endPort, 'may not be specified when `port` is not specified'))
  else if (typeof port === 'string')
    causes.push(fieldInvalid(at, endPort, 'may not be specified when `port` is non-numeric'))
  else {
    // As upstream, which prints the port here.
    if (endPort < port) causes.push(fieldInvalid(at, port, 'must be greater than or equal to `port`'))
    causes.push(...portNumber(at, endPort))
  }
  return causes
}

function peerCauses(path: string, peer: Data<V1NetworkPolicyPeer>, known: ReadonlySet<string>): StatusCause[] {
  const { ipBlock, podSelector, namespaceSelector } = peer
  const causes = [
    ...labelSelectorCauses(`${path}.podSelector`, podSelector),
    ...labelSelectorCauses(`${path}.namespaceSelector`, namespaceSelector),
    ...(ipBlock === undefined ? [] : blockCauses(`${path}.ipBlock`, ipBlock, known)),
  ]
  if (!ipBlock && !podSelector && !namespaceSelector) causes.push(fieldRequired(path, 'must specify a peer'))
  if (ipBlock && (podSelector || namespaceSelector))
    causes.push(fieldForbidden(path, 'may not specify both ipBlock and another peer'))
  return causes
}

function blockCauses(path: string, { cidr, except = [] }: Data<V1IPBlock>, known: ReadonlySet<string>): StatusCause[] {
  if (cidr === '') return [fieldRequired(`${path}.cidr`)]
  const unlessKnown = (at: string, text: string): StatusCause[] => (known.has(text) ? [] : legacyCidrCauses(at, text))
  const causes = unlessKnown(`${path}.cidr`, cidr)
  const outer = tryCidr(cidr)
  if (outer === undefined) return causes
  return [
    ...causes,
    ...except.flatMap((text, index) => {
      const at = `${path}.except[${index}]`
      const inner = tryCidr(text)
      const wrong = unlessKnown(at, text)
      return inner === undefined || isStrictlyInside(inner, outer)
        ? wrong
        : [...wrong, fieldInvalid(at, text, 'must be a strict subset of `cidr`')]
    }),
  ]
}
