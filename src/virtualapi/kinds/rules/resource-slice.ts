// ResourceSlices: the devices that a driver offers on one node or several.
import type {
  V1Device,
  V1DeviceAttribute,
  V1NodeSelector,
  V1ResourcePool,
  V1ResourceSliceSpec,
} from '@kubernetes/client-node'
import type { JsonObject, JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { driverName, label, notBelowZero, positive, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { deviceQualifiedName, keyedList, poolName, truncatedKey } from '#virtualapi/kinds/validation/device-names.ts'
import { nodeSelector } from '#virtualapi/kinds/validation/node-selector.ts'
import {
  all,
  changes,
  fields,
  firstOf,
  immutable,
  maxBytes,
  must,
  optional,
  validatingChange,
  validatingSpec,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1ResourceSliceSpec>
type Device = Data<V1Device>
type Attribute = Data<V1DeviceAttribute>

const maxAttributesAndCapacities = 32
const longestValue = maxBytes(64)
const oneOf = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'

const oneTerm: Rule<Data<V1NodeSelector>> = ({ nodeSelectorTerms }, report) => {
  const terms = (nodeSelectorTerms as JsonValue[] | null) ?? []
  if (terms.length === 1) return
  const texts = terms.map((term) => internalText('core.NodeSelectorTerm', term as JsonObject))
  report.invalidText('nodeSelectorTerms', `[${texts.join(',')}]`, 'must have exactly one node selector term')
}

const nodeSelection = all<Spec>(
  fields<Spec>({
    nodeName: optional(
      firstOf<string>(
        must((name) => name !== '', 'must be either unset or set to a non-empty string'),
        subdomain,
      ),
    ),
    nodeSelector: optional(all(nodeSelector, oneTerm)),
    allNodes: must((all) => all, 'must be either unset or set to true'),
  }),
  ({ nodeName, nodeSelector: selector, allNodes }, report) => {
    const set = [nodeName && '`nodeName`', selector && '`nodeSelector`', allNodes && '`allNodes`'].filter(Boolean)
    if (set.length === 0) report.required('', oneOf)
    if (set.length > 1) report.invalid('', `{${set.join(', ')}}`, `${oneOf}, but multiple fields are set`)
  },
)

const identifier = '(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)'
const semver = new RegExp(
  `^(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)(?:-${identifier}(?:\\.${identifier})*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
)

const attribute = all<Attribute>(
  fields<Attribute>({
    string: longestValue,
    version: all<string | undefined>(
      must(
        // A long text is not matched, to bound the time of the regular expression.
        (version: string) => version.length <= 1024 && semver.test(version),
        'must be a string compatible with semver.org spec 2.0.0',
      ),
      longestValue,
    ),
  }),
  (one, report) => {
    const count = Object.keys(one).length
    const detail = 'exactly one value must be specified'
    if (count === 0) report.required('', detail)
    if (count > 1) report.invalidStruct('', 'resource.DeviceAttribute', one, detail)
  },
)

const device: Rule<Device> = ({ name, attributes = {}, capacity = {} }, report) => {
  report.at('name', label, name)
  const facts = Object.keys(attributes).length + Object.keys(capacity).length
  const detail = `the total number of attributes and capacities must not exceed ${maxAttributesAndCapacities}`
  if (facts > maxAttributesAndCapacities) report.invalid('', facts, detail)
  for (const [key, value] of Object.entries(attributes)) {
    const place = `attributes[${truncatedKey(key)}]`
    report.at(place, deviceQualifiedName, key)
    report.at(place, attribute, value)
  }
  for (const key of Object.keys(capacity)) report.at(`capacity[${truncatedKey(key)}]`, deviceQualifiedName, key)
}

const specRule = all<Spec>(
  fields<Spec>({
    driver: driverName,
    pool: fields<Data<V1ResourcePool>>({
      name: poolName,
      resourceSliceCount: positive,
      generation: notBelowZero,
    }),
  }),
  nodeSelection,
  fields<Spec>({ devices: keyedList(device, { most: 128, member: 'name', keyOf: ({ name }) => name }) }),
)

export const resourceSliceRules: KindRules = {
  prepareForCreate: dropDisabled,
  prepareForUpdate: dropDisabled,
  validate: validatingSpec(specRule),
  validateChange: validatingChange(
    changes<ObjectOf<Spec>>({
      spec: changes({
        pool: changes<Data<V1ResourcePool>>({ name: immutable() }),
        driver: immutable(),
        nodeName: immutable(),
      }),
    }),
  ),
}

const disabledMembers = [
  'allNodes',
  'allowMultipleAllocations',
  'bindingConditions',
  'bindingFailureConditions',
  'bindsToNode',
  'consumesCounters',
  'nodeName',
  'nodeSelector',
  'taints',
] as const

/** Drops fields that upstream's default feature gates drop. Mutates the object. */
function dropDisabled(object: KubeObject): void {
  const spec = object['spec'] as Spec
  delete spec.sharedCounters
  delete spec.perDeviceNodeSelection
  for (const device of (spec.devices as Device[] | null | undefined) ?? []) {
    for (const member of disabledMembers) Reflect.deleteProperty(device, member)
    for (const capacity of Object.values(device.capacity ?? {})) Reflect.deleteProperty(capacity, 'requestPolicy')
  }
}
