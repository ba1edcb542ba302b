// ServiceCIDRs and IPAddresses: the ranges for Service addresses, and the addresses in use.
import type { V1ParentReference, V1ServiceCIDRSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { pathSegment, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { cidrErrors, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import {
  all,
  changes,
  each,
  fieldImmutable,
  fields,
  given,
  immutable,
  nonEmpty,
  optional,
  present,
  text,
  validating,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1ServiceCIDRSpec>
type Range = ObjectOf<Spec>

const cidrList = each(text(cidrErrors))

const specRule: Rule<Spec> = (spec, report) => {
  const { cidrs = [] } = spec
  if (cidrs.length === 0) {
    report.required('cidrs', 'at least one CIDR required')
    return
  }
  if (cidrs.length > 2) {
    report.invalidStruct('cidrs', 'networking.ServiceCIDRSpec', spec, 'may only hold up to 2 values')
    return
  }
  report.at('cidrs', cidrList, cidrs)
  const [one, other] = cidrs.map((cidr) => tryCidr(cidr)?.ip.family)
  const detail = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'
  if (one !== undefined && one === other) report.invalid('cidrs', cidrs, detail)
}

const cidrsChange: Rule<Range, Range> = ({ spec }, report, old) => {
  const [next, before] = [spec.cidrs ?? [], old.spec.cidrs ?? []]
  // A range of a second IP family may be added.
  const grows = before.length === 1 && next.length === 2
  if (next.length !== before.length && !grows) {
    report.invalid('spec.cidrs', next, fieldImmutable)
    return
  }
  for (const [index, cidr] of before.entries()) report.at(`spec.cidrs[${index}]`, fixed, next[index] ?? '', cidr)
  if (grows) report.at('spec', specRule, spec)
}
const fixed = immutable()

export const serviceCidrRules: KindRules = {
  validate: validating<Range>(({ spec }, report, old) => {
    if (old === undefined) report.at('spec', specRule, spec)
  }),
  validateChange: validatingChange(cidrsChange),
}

type Address = ObjectOf<{ readonly parentRef?: Partial<Data<V1ParentReference>> | null } | undefined>

const parent = present(
  fields<Partial<Data<V1ParentReference>>>({
    group: given(subdomain),
    resource: all<string | undefined>(nonEmpty(), optional(pathSegment)),
    name: all<string | undefined>(nonEmpty(), optional(pathSegment)),
    namespace: optional(pathSegment),
  }),
)

export const ipAddressRules: KindRules = {
  validate: validating<Address>(({ spec }, report, old) => {
    if (old === undefined) report.at('spec.parentRef', parent, spec?.parentRef)
  }),
  validateChange: validatingChange(
    changes<Address>({
      spec: (now, report, old) => report.at('parentRef', fixedParent, now?.parentRef, old?.parentRef),
    }),
  ),
}
const fixedParent = immutable('networking.ParentReference')
