// Nodes: taints, resources and pod CIDRs.
import type { V1NodeSpec, V1NodeStatus } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, labelValueErrors } from '#apimachinery/field/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { legacyCidrCauses, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import { amountCauses } from '#virtualapi/kinds/validation/resources.ts'
import { taintEffects } from '#virtualapi/kinds/validation/scheduling.ts'
import { qualifiedName, requiredOneOf } from '#virtualapi/kinds/validation/values.ts'
import { cidrWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'

const notReady = 'node.kubernetes.io/not-ready'

interface Node extends KubeObject {
  spec: Data<V1NodeSpec>
  status: Data<V1NodeStatus>
}

export const nodeRules: KindRules = {
  warningsOf(object) {
    const { configSource, externalID, podCIDRs = [] } = (object as Node).spec
    return [
      ...(configSource === undefined ? [] : ['spec.configSource: the feature is removed']),
      ...(externalID ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes'] : []),
      ...podCIDRs.flatMap((cidr, index) => cidrWarnings(`spec.podCIDRs[${index}]`, cidr)),
    ]
  },
  keepsStatusOnCreate: true,
  beforeDefaults(object) {
    const { spec, status } = object
    if (isJsonObject(spec)) {
      const { podCIDR } = spec
      const first = Array.isArray(spec['podCIDRs']) ? spec['podCIDRs'][0] : undefined
      // podCIDR is the older member and wins.
      if (podCIDR && podCIDR !== first) spec['podCIDRs'] = [podCIDR]
      else if (first !== undefined) spec['podCIDR'] = first
    }
    if (isJsonObject(status) && isJsonObject(status['capacity'])) status['allocatable'] ??= { ...status['capacity'] }
  },
  prepareForCreate(object) {
    const { spec, status } = object as Node
    delete spec.configSource
    delete status.config
    const { taints = [] } = spec
    // As upstream's admission plugin TaintNodesByCondition. The taint is removed when the node is ready.
    if (!taints.some(({ key, effect }) => key === notReady && effect === 'NoSchedule'))
      spec.taints = [...taints, { key: notReady, effect: 'NoSchedule' }]
  },
  validate(object) {
    const { spec, status } = object as Node
    return [...taintsCauses(spec), ...amountsCauses(status), ...rangesCauses('spec.podCIDRs', spec.podCIDRs ?? [])]
  },
  // As upstream, which repeats some of the validation.
  validateChange: (object, old) => changeCauses(object as Node, old as Node),
  validateSubresource: (object, old, subresource) =>
    subresource === 'status' ? changeCauses(object as Node, old as Node) : [],
}

function taintsCauses({ taints = [] }: Node['spec']): StatusCause[] {
  const seen = new Set<string>()
  return taints.flatMap((taint, index) => {
    const { key, value = '', effect } = taint
    const at = `metadata.taints[${index}]`
    const wrong = labelValueErrors(value)
    const causes = [
      ...qualifiedName(`${at}.key`, key),
      ...(wrong.length > 0 ? [fieldInvalid(`${at}.value`, value, wrong.join(';'))] : []),
      ...requiredOneOf(`${at}.effect`, effect, taintEffects),
    ]
    const pair = `${key} ${effect}`
    if (seen.has(pair)) causes.push(duplicate(at, 'core.Taint', taint, 'taints must be unique by key and effect pair'))
    seen.add(pair)
    return causes
  })
}

function duplicate(field: string, struct: string, value: unknown, detail = ''): StatusCause {
  const shown = internalText(struct, value)
  return {
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: ${shown}${detail === '' ? '' : `: ${detail}`}`,
    field,
  }
}

function amountsCauses(status: Node['status']): StatusCause[] {
  return (['capacity', 'allocatable'] as const).flatMap((member) =>
    Object.entries(status[member] ?? {}).flatMap(([name, text]) =>
      amountCauses(`status.${member}.${name}`, name, text),
    ),
  )
}

/** Allows at most one CIDR per IP family. */
function rangesCauses(path: string, ranges: readonly string[]): StatusCause[] {
  const causes = ranges.flatMap((range, index) => legacyCidrCauses(`${path}[${index}]`, range))
  if (ranges.length < 2) return causes
  const families = ranges.map((range) => tryCidr(range)?.ip.family)
  const bad = families.indexOf(undefined)
  if (bad >= 0)
    causes.push({
      reason: 'InternalError',
      message: `Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[${bad}]: <nil> (invalid CIDR address: ${ranges[bad] ?? ''})`,
      field: path,
    })
  return bad >= 0 || ranges.length > 2 || families[0] === families[1]
    ? [...causes, fieldInvalid(path, [...ranges], 'may specify no more than one CIDR for each IP family')]
    : causes
}

function changeCauses({ spec, status }: Node, { spec: old }: Node): StatusCause[] {
  const seen = new Set<string>()
  const causes = amountsCauses(status)
  for (const [index, address] of (status.addresses ?? []).entries()) {
    const text = JSON.stringify([address.type, address.address])
    if (seen.has(text)) causes.push(duplicate(`status.addresses[${index}]`, 'core.NodeAddress', address))
    seen.add(text)
  }
  const [ranges, before] = [spec.podCIDRs ?? [], old.podCIDRs ?? []]
  const moved = ranges.length === before.length ? before.filter((range, index) => ranges[index] !== range).length : 1
  const podCidrText = 'node updates may not change podCIDR except from "" to valid'
  if (before.length > 0)
    for (let count = 0; count < moved; count++) causes.push(fieldForbidden('spec.podCIDRs', podCidrText))
  if (old.providerID !== undefined && spec.providerID !== old.providerID)
    causes.push(fieldForbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
  causes.push(...taintsCauses(spec))
  if (spec.externalID !== old.externalID) causes.push(fieldForbidden('spec.externalID', 'may not be updated'))
  return causes
}
