// CSIDriver, CSINode and CSIStorageCapacity.
import { isDeepStrictEqual } from 'node:util'
import type { V1CSIDriverSpec, V1CSINodeSpec, V1CSIStorageCapacity } from '@kubernetes/client-node'
import {
  byteLength,
  fieldDuplicate,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { labelSelectorCauses } from '#virtualapi/kinds/validation/label-selector.ts'
import { nonNegativeQuantity } from '#virtualapi/kinds/validation/resources.ts'
import {
  fieldImmutable,
  nonNegative,
  qualifiedName,
  subdomain,
  supported,
} from '#virtualapi/kinds/validation/values.ts'
import { dropFromSpec } from './drop-from-spec.ts'

type DriverSpec = Data<V1CSIDriverSpec>

const lifecycleModes = ['Persistent', 'Ephemeral']

export const csiDriverRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['nodeAllocatableUpdatePeriodSeconds']),
  prepareForUpdate(object, old) {
    // A new CSIDriver has no generation; its first change sets 1.
    if (!isDeepStrictEqual(object['spec'], old['spec'])) object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
  validate(object) {
    const { fsGroupPolicy, tokenRequests = [], volumeLifecycleModes = [] } = object['spec'] as DriverSpec
    return [
      ...supported('spec.fsGroupPolicy', fsGroupPolicy, ['File', 'None', 'ReadWriteOnceWithFSType']),
      ...tokenRequestCauses('spec.tokenRequests', tokenRequests),
      ...volumeLifecycleModes
        .filter((mode) => !lifecycleModes.includes(mode))
        .map((mode) => fieldNotSupported('spec.volumeLifecycleModes', mode, lifecycleModes)),
    ]
  },
  validateChange(object, old) {
    const next = object['spec'] as DriverSpec
    const before = old['spec'] as DriverSpec
    return [
      // As upstream, which misspells this path.
      ...immutable('spec.attachedRequired', next.attachRequired, before.attachRequired),
      ...immutable('spec.volumeLifecycleModes', next.volumeLifecycleModes, before.volumeLifecycleModes),
    ]
  },
}

function immutable(path: string, next: JsonValue | undefined, before: JsonValue | undefined): StatusCause[] {
  return isDeepStrictEqual(next, before) ? [] : [fieldInvalid(path, next ?? null, fieldImmutable)]
}

function tokenRequestCauses(path: string, requests: NonNullable<DriverSpec['tokenRequests']>): StatusCause[] {
  const audiences = new Set<string>()
  return requests.flatMap(({ audience, expirationSeconds = 600 }, index) => {
    const at = `${path}[${index}]`
    if (audiences.has(audience)) return [fieldDuplicate(`${at}.audience`, audience)]
    audiences.add(audience)
    const wrong = (text: string): StatusCause[] => [fieldInvalid(`${at}.expirationSeconds`, expirationSeconds, text)]
    if (expirationSeconds < 600) return wrong('may not specify a duration less than 10 minutes')
    return expirationSeconds > 2 ** 32 ? wrong('may not specify a duration larger than 2^32 seconds') : []
  })
}

type Driver = Data<V1CSINodeSpec>['drivers'][number]

const driversOf = ({ spec }: KubeObject): readonly Driver[] =>
  (spec as { drivers: Driver[] | null } | undefined)?.drivers ?? []

export const csiNodeRules: KindRules = {
  validate: csiNodeCauses,
  validateChange(object, old) {
    const known = new Map(driversOf(old).map((driver) => [driver.name, driver]))
    const changed = driversOf(object).filter((driver) => {
      const before = known.get(driver.name)
      return before !== undefined && !isDeepStrictEqual(driver, before)
    })
    return [
      // As upstream, which validates a changed CSINode twice.
      ...csiNodeCauses(object),
      ...changed.map((driver) => invalidInternal('spec.drivers', 'storage.CSINodeDriver', driver, fieldImmutable)),
    ]
  },
}

const longestNodeId = 256

function csiNodeCauses(object: KubeObject): StatusCause[] {
  const names = new Set<string>()
  return driversOf(object).flatMap((driver, index) => {
    const { name, nodeID, allocatable } = driver
    const at = `spec.drivers[${index}]`
    const causes = driverNameCauses(`${at}.name`, name)
    if (nodeID === '') causes.push(fieldRequired(`${at}.nodeID`))
    if (byteLength(nodeID) > longestNodeId)
      causes.push(fieldInvalid(`${at}.nodeID`, nodeID, `must be ${longestNodeId} characters or less`))
    causes.push(...nonNegative(`${at}.allocatable.count`, allocatable?.count))
    if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    names.add(name)
    return [...causes, ...topologyKeyCauses(at, (driver.topologyKeys as string[] | null | undefined) ?? [])]
  })
}

function topologyKeyCauses(path: string, keys: readonly string[]): StatusCause[] {
  const seen = new Set<string>()
  return keys.flatMap((key) => {
    const causes = key === '' ? [fieldRequired(path)] : []
    if (seen.has(key)) causes.push(fieldDuplicate(path, key))
    seen.add(key)
    return [...causes, ...qualifiedName(path, key)]
  })
}

type Capacity = Data<Omit<V1CSIStorageCapacity, 'metadata'>>

export const csiStorageCapacityRules: KindRules = {
  validate(object) {
    const { nodeTopology, storageClassName, capacity } = object as unknown as Capacity
    return [
      ...labelSelectorCauses('nodeTopology', nodeTopology),
      ...subdomain('storageClassName', storageClassName),
      ...(capacity === undefined ? [] : nonNegativeQuantity('capacity', capacity)),
    ]
  },
  validateChange: (object, old) =>
    ['nodeTopology', 'storageClassName'].flatMap((member) =>
      immutable(member, object[member] as JsonValue | undefined, old[member] as JsonValue | undefined),
    ),
  warningsOf(object) {
    const { matchExpressions = [], matchLabels = {} } = (object as unknown as Capacity).nodeTopology ?? {}
    return [
      ...matchExpressions.flatMap(({ key }, index) => {
        const why = deprecatedNodeLabel(key)
        return why === undefined ? [] : [`nodeTopology.matchExpressions[${index}].key: ${key} is ${why}`]
      }),
      ...Object.keys(matchLabels).flatMap((key) => {
        const why = deprecatedNodeLabel(key)
        return why === undefined ? [] : [`nodeTopology.matchLabels.${key}: ${why}`]
      }),
    ]
  },
}
