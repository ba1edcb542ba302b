// ResourceSlices: the devices that a driver offers on one node or several.
import type { V1Device, V1DeviceAttribute, V1DeviceCapacity, V1ResourceSliceSpec } from '@kubernetes/client-node'
import { byteLength, fieldInvalid, fieldRequired, fieldTooLong } from '#apimachinery/field/index.ts'
import type { JsonObject, JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  deviceQualifiedNameCauses,
  listCauses,
  poolNameCauses,
  repeatedCauses,
  truncatedKey,
} from '#virtualapi/kinds/validation/device-names.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import { internalText, invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { nodeSelectorCauses } from '#virtualapi/kinds/validation/node-selector.ts'
import { fieldImmutable, label, subdomain } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1ResourceSliceSpec>
type Device = Data<V1Device>

const mostDevices = 128
const maxAttributesAndCapacities = 32
const longestValue = 64
const oneOf = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'

const specOf = ({ spec }: KubeObject): Spec => spec as Spec
const devicesOf = (spec: Spec): Device[] => (spec.devices as Device[] | null | undefined) ?? []

export const resourceSliceRules: KindRules = {
  prepareForCreate: dropDisabled,
  prepareForUpdate: dropDisabled,
  validate(object) {
    const spec = specOf(object)
    const devices = devicesOf(spec)
    return [
      ...driverNameCauses('spec.driver', spec.driver),
      ...poolCauses('spec.pool', spec.pool),
      ...nodeSelectionCauses('spec', spec),
      ...listCauses('spec.devices', devices, mostDevices, deviceCauses),
      ...repeatedCauses(
        'spec.devices',
        devices.map(({ name }) => name),
        'name',
      ),
    ]
  },
  validateChange(object, old) {
    const next = specOf(object)
    const before = specOf(old)
    const fixed = (path: string, now: string | undefined, then: string | undefined): StatusCause[] =>
      now === then ? [] : [fieldInvalid(path, now ?? null, fieldImmutable)]
    return [
      ...fixed('spec.pool.name', next.pool.name, before.pool.name),
      ...fixed('spec.driver', next.driver, before.driver),
      ...fixed('spec.nodeName', next.nodeName, before.nodeName),
    ]
  },
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
  const spec = specOf(object)
  delete spec.sharedCounters
  delete spec.perDeviceNodeSelection
  for (const device of devicesOf(spec)) {
    for (const member of disabledMembers) Reflect.deleteProperty(device, member)
    for (const capacity of Object.values(device.capacity ?? {})) Reflect.deleteProperty(capacity, 'requestPolicy')
  }
}

function poolCauses(path: string, { name, resourceSliceCount: count, generation }: Spec['pool']): StatusCause[] {
  return [
    ...poolNameCauses(`${path}.name`, name),
    ...(count <= 0 ? [fieldInvalid(`${path}.resourceSliceCount`, count, 'must be greater than zero')] : []),
    ...(generation < 0
      ? [fieldInvalid(`${path}.generation`, generation, 'must be greater than or equal to zero')]
      : []),
  ]
}

function nodeSelectionCauses(path: string, { nodeName, nodeSelector, allNodes }: Spec): StatusCause[] {
  const causes: StatusCause[] = []
  const set: string[] = []
  if (nodeName === '')
    causes.push(fieldInvalid(`${path}.nodeName`, nodeName, 'must be either unset or set to a non-empty string'))
  else if (nodeName !== undefined) {
    set.push('`nodeName`')
    causes.push(...subdomain(`${path}.nodeName`, nodeName))
  }
  if (nodeSelector !== undefined) {
    set.push('`nodeSelector`')
    causes.push(...nodeSelectorCauses(`${path}.nodeSelector`, nodeSelector), ...oneTermCauses(path, nodeSelector))
  }
  if (allNodes === false) causes.push(fieldInvalid(`${path}.allNodes`, allNodes, 'must be either unset or set to true'))
  else if (allNodes) set.push('`allNodes`')
  if (set.length === 0) causes.push(fieldRequired(path, oneOf))
  if (set.length > 1) causes.push(fieldInvalid(path, `{${set.join(', ')}}`, `${oneOf}, but multiple fields are set`))
  return causes
}

function oneTermCauses(path: string, selector: NonNullable<Spec['nodeSelector']>): StatusCause[] {
  const terms = (selector.nodeSelectorTerms as JsonValue[] | null) ?? []
  if (terms.length === 1) return []
  const texts = terms.map((term) => internalText('core.NodeSelectorTerm', term as JsonObject))
  const shown = `[${texts.join(',')}]`
  return [
    {
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${shown}: must have exactly one node selector term`,
      field: `${path}.nodeSelector.nodeSelectorTerms`,
    },
  ]
}

function deviceCauses(path: string, { name, attributes = {}, capacity = {} }: Device): StatusCause[] {
  const facts = Object.keys(attributes).length + Object.keys(capacity).length
  return [
    ...label(`${path}.name`, name),
    ...(facts > maxAttributesAndCapacities
      ? [
          fieldInvalid(
            path,
            facts,
            `the total number of attributes and capacities must not exceed ${maxAttributesAndCapacities}`,
          ),
        ]
      : []),
    ...mapCauses<Data<V1DeviceAttribute>>(`${path}.attributes`, attributes, attributeCauses),
    ...mapCauses<Data<V1DeviceCapacity>>(`${path}.capacity`, capacity, () => []),
  ]
}

function mapCauses<Value>(
  path: string,
  map: Readonly<Record<string, Value>>,
  valueCauses: (path: string, value: Value) => StatusCause[],
): StatusCause[] {
  return Object.entries(map).flatMap(([key, value]) => {
    const at = `${path}[${truncatedKey(key)}]`
    return [...deviceQualifiedNameCauses(at, key), ...valueCauses(at, value)]
  })
}

const identifier = '(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)'
const semver = new RegExp(
  `^(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)(?:-${identifier}(?:\\.${identifier})*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
)

function attributeCauses(path: string, attribute: Data<V1DeviceAttribute>): StatusCause[] {
  const { string = '', version } = attribute
  const count = Object.keys(attribute).length
  const tooLong = (member: string, text: string): StatusCause[] =>
    byteLength(text) > longestValue ? [fieldTooLong(`${path}.${member}`, longestValue)] : []
  return [
    ...tooLong('string', string),
    // A long text is not matched, to bound the time of the regular expression.
    ...(version === undefined || (version.length <= 1024 && semver.test(version))
      ? []
      : [fieldInvalid(`${path}.version`, version, 'must be a string compatible with semver.org spec 2.0.0')]),
    ...tooLong('version', version ?? ''),
    ...(count === 0 ? [fieldRequired(path, 'exactly one value must be specified')] : []),
    ...(count > 1
      ? [invalidInternal(path, 'resource.DeviceAttribute', attribute, 'exactly one value must be specified')]
      : []),
  ]
}
