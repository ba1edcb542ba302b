// ServiceCIDRs and IPAddresses: the ranges for Service addresses, and the addresses in use.
import type { V1ParentReference, V1ServiceCIDRSpec } from '@kubernetes/client-node'
import { isDeepStrictEqual } from 'node:util'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { cidrErrors, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import { fieldImmutable, required, subdomain } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1ServiceCIDRSpec>
type Parent = Partial<Data<V1ParentReference>>

const path = 'spec.cidrs'
const cidrsOf = (object: KubeObject): readonly string[] => (object['spec'] as Spec).cidrs ?? []

export const serviceCidrRules: KindRules = {
  validate: (object, old) => (old === undefined ? specCauses(object['spec'] as Spec) : []),
  validateChange(object, old) {
    const [next, before] = [cidrsOf(object), cidrsOf(old)]
    const moved = (index: number): StatusCause[] => {
      const text = next[index] ?? ''
      return text === before[index] ? [] : [fieldInvalid(`${path}[${index}]`, text, fieldImmutable)]
    }
    if (next.length === before.length) return before.flatMap((_, index) => moved(index))
    // A range of a second IP family may be added.
    if (before.length === 1 && next.length === 2) return [...moved(0), ...specCauses(object['spec'] as Spec)]
    return [fieldInvalid(path, [...next], fieldImmutable)]
  },
}

function specCauses(spec: Spec): StatusCause[] {
  const { cidrs = [] } = spec
  if (cidrs.length === 0) return [fieldRequired(path, 'at least one CIDR required')]
  if (cidrs.length > 2)
    return [invalidInternal(path, 'networking.ServiceCIDRSpec', spec, 'may only hold up to 2 values')]
  const causes = cidrs.flatMap((text, index) =>
    cidrErrors(text).map((detail) => fieldInvalid(`${path}[${index}]`, text, detail)),
  )
  const [one, other] = cidrs.map((text) => tryCidr(text)?.ip.family)
  if (one === undefined || one !== other) return causes
  const detail = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'
  return [...causes, fieldInvalid(path, cidrs, detail)]
}

export const ipAddressRules: KindRules = {
  validate: (object, old) => (old === undefined ? parentCauses('spec.parentRef', parentOf(object)) : []),
  validateChange(object, old) {
    const parent = parentOf(object)
    if (isDeepStrictEqual(parent, parentOf(old))) return []
    return [invalidInternal('spec.parentRef', 'networking.ParentReference', parent, fieldImmutable)]
  },
}

function parentOf(object: KubeObject): Parent | undefined {
  return (object['spec'] as { parentRef?: Parent | null } | undefined)?.parentRef ?? undefined
}

function parentCauses(at: string, parent: Parent | undefined): StatusCause[] {
  if (parent === undefined) return [fieldRequired(at)]
  const { group = '', resource = '', name = '', namespace = '' } = parent
  const segment = (member: string, text: string): StatusCause[] =>
    pathSegmentName(text, { prefix: false }).map((detail) => fieldInvalid(`${at}.${member}`, text, detail))
  return [
    ...(group === '' ? [] : subdomain(`${at}.group`, group)),
    ...required(`${at}.resource`, resource),
    ...segment('resource', resource),
    ...required(`${at}.name`, name),
    ...segment('name', name),
    ...segment('namespace', namespace),
  ]
}
