// NetworkPolicies: allowed traffic of the pods they select.
import type {
  V1IPBlock,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyIngressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
  V1NetworkPolicySpec,
} from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { portNumber, portOrName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { isStrictlyInside, legacyCidr, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import { labelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  each,
  fields,
  firstOf,
  given,
  must,
  oneOf,
  optional,
  validating,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { cidrWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1NetworkPolicySpec>
type Peer = Data<V1NetworkPolicyPeer>
type Peers = readonly Peer[] | undefined
/** The CIDRs of the stored object; they are not validated again. */
type Known = ReadonlySet<string>

const port = all<Data<V1NetworkPolicyPort>>(
  fields({ protocol: given(oneOf(['TCP', 'UDP', 'SCTP'])), port: optional(portOrName) }),
  ({ port: first, endPort }, report) => {
    if (endPort === undefined) return
    if (first === undefined) report.invalid('endPort', endPort, 'may not be specified when `port` is not specified')
    else if (typeof first === 'string')
      report.invalid('endPort', endPort, 'may not be specified when `port` is non-numeric')
    else {
      // As upstream, which prints the port here.
      if (endPort < first) report.invalid('endPort', first, 'must be greater than or equal to `port`')
      report.at('endPort', portNumber, endPort)
    }
  },
)

const cidrUnlessKnown: Rule<string, Known> = (cidr, report, known) => {
  if (!known.has(cidr)) report.check(legacyCidr, cidr)
}

const block: Rule<Data<V1IPBlock>, Known> = ({ cidr, except = [] }, report, known) => {
  if (cidr === '') {
    report.required('cidr')
    return
  }
  report.at('cidr', cidrUnlessKnown, cidr, known)
  const outer = tryCidr(cidr)
  if (outer === undefined) return
  for (const [index, text] of except.entries()) {
    const inner = tryCidr(text)
    report.at(`except[${index}]`, cidrUnlessKnown, text, known)
    if (inner !== undefined && !isStrictlyInside(inner, outer))
      report.invalid(`except[${index}]`, text, 'must be a strict subset of `cidr`')
  }
}

const peer = all<Peer, Known>(
  fields<Peer, Known>({ podSelector: labelSelector, namespaceSelector: labelSelector, ipBlock: optional(block) }),
  ({ ipBlock, podSelector, namespaceSelector }, report) => {
    if (!ipBlock && !podSelector && !namespaceSelector) report.required('', 'must specify a peer')
    if (ipBlock && (podSelector || namespaceSelector))
      report.forbidden('', 'may not specify both ipBlock and another peer')
  },
)

const specRule = fields<Spec, Known>({
  podSelector: labelSelector,
  ingress: each(fields<Data<V1NetworkPolicyIngressRule>, Known>({ ports: each(port), from: each(peer) })),
  egress: each(fields<Data<V1NetworkPolicyEgressRule>, Known>({ ports: each(port), to: each(peer) })),
  policyTypes: firstOf<string[] | undefined>(
    must((list: string[]) => list.length <= 2, 'may not specify more than two policyTypes'),
    each(given(oneOf(['Ingress', 'Egress']))),
  ),
})

export const networkPolicyRules: KindRules = {
  warningsOf(object) {
    const { ingress = [], egress = [] } = object['spec'] as Spec
    return [
      ...ingress.flatMap(({ from }, i) => blockWarnings(`spec.ingress[${i}].from`, from)),
      ...egress.flatMap(({ to }, i) => blockWarnings(`spec.egress[${i}].to`, to)),
    ]
  },
  validatesUpdateTwice: true,
  validate: validating<ObjectOf<Spec>>(({ spec }, report, old) =>
    report.at('spec', specRule, spec, old === undefined ? new Set() : blocksOf(old.spec)),
  ),
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

function blocksOf({ ingress = [], egress = [] }: Spec): Set<string> {
  const peers = [...ingress.flatMap(({ from }) => from ?? []), ...egress.flatMap(({ to }) => to ?? [])]
  return new Set(peers.flatMap(({ ipBlock }) => (ipBlock ? [ipBlock.cidr, ...(ipBlock.except ?? [])] : [])))
}
