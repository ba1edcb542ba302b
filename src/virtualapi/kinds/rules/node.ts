// Nodes: taints, resources and pod CIDRs.
import type { V1NodeAddress, V1NodeSpec, V1NodeStatus, V1Taint } from '@kubernetes/client-node'
import { labelValueErrors } from '#apimachinery/field/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { qualifiedName, taintEffects } from '#virtualapi/kinds/validation/basic-rules.ts'
import { legacyCidr, tryCidr } from '#virtualapi/kinds/validation/ip-values.ts'
import { amount } from '#virtualapi/kinds/validation/resources.ts'
import {
  all,
  causesOf,
  each,
  fields,
  oneOf,
  required,
  validating,
  validatingChange,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { cidrWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import type { KindRules } from './kind-rules.ts'

const notReady = 'node.kubernetes.io/not-ready'

interface Node extends KubeObject {
  spec: Data<V1NodeSpec>
  status: Data<V1NodeStatus>
}

function duplicate(report: Report, struct: string, value: unknown, detail = ''): void {
  const message = `Duplicate value: ${internalText(struct, value)}${detail === '' ? '' : `: ${detail}`}`
  report.add({ reason: 'FieldValueDuplicate', message, field: report.path() })
}

const taint = all<Data<V1Taint>>(
  fields<Data<V1Taint>>({
    key: qualifiedName,
    value: (value = '', report) => {
      const wrong = labelValueErrors(value)
      if (wrong.length > 0) report.invalid('', value, wrong.join(';'))
    },
    effect: required(oneOf(taintEffects)),
  }),
  (one, report) => {
    if (report.isRepeated(taint, `${one.key} ${one.effect}`))
      duplicate(report, 'core.Taint', one, 'taints must be unique by key and effect pair')
  },
)
const taintList = each(taint)
/** As upstream, whose path of the taints is in the metadata. */
const taints: Rule<Node> = ({ spec }, report) => report.at('metadata.taints', taintList, spec.taints)

const amounts: Rule<Node> = ({ status }, report) => {
  for (const member of ['capacity', 'allocatable'] as const)
    for (const [name, text] of Object.entries(status[member] ?? {}))
      report.at(`status.${member}.${name}`, amount, text, name)
}

/** At most one CIDR per IP family. */
const ranges: Rule<readonly string[] | undefined> = (list = [], report) => {
  report.each(list, legacyCidr)
  if (list.length < 2) return
  const families = list.map((range) => tryCidr(range)?.ip.family)
  const bad = families.indexOf(undefined)
  if (bad >= 0)
    report.add({
      reason: 'InternalError',
      message: `Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[${bad}]: <nil> (invalid CIDR address: ${list[bad] ?? ''})`,
      field: report.path(),
    })
  if (bad >= 0 || list.length > 2 || families[0] === families[1])
    report.invalid('', [...list], 'may specify no more than one CIDR for each IP family')
}

const nodeRule = all<Node>(taints, amounts, ({ spec }, report) => report.at('spec.podCIDRs', ranges, spec.podCIDRs))

const address: Rule<Data<V1NodeAddress>> = (one, report) => {
  if (report.isRepeated(address, JSON.stringify([one.type, one.address]))) duplicate(report, 'core.NodeAddress', one)
}
const addresses = each(address)

const nodeChange: Rule<Node, Node> = (node, report, { spec: old }) => {
  const { spec, status } = node
  report.check(amounts, node)
  report.at('status.addresses', addresses, status.addresses)
  const [now, before] = [spec.podCIDRs ?? [], old.podCIDRs ?? []]
  const moved = now.length === before.length ? before.filter((range, index) => now[index] !== range).length : 1
  for (let count = 0; count < moved && before.length > 0; count++)
    report.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')
  if (old.providerID !== undefined && spec.providerID !== old.providerID)
    report.forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid')
  report.check(taints, node)
  if (spec.externalID !== old.externalID) report.forbidden('spec.externalID', 'may not be updated')
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
  validate: validating(nodeRule),
  // As upstream, which repeats some of the validation.
  validateChange: validatingChange(nodeChange),
  validateSubresource: (object, old, subresource) =>
    subresource === 'status' ? causesOf(nodeChange, '', object as Node, old as Node) : [],
}
