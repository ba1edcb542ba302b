// CSIDriver, CSINode and CSIStorageCapacity.
import { isDeepStrictEqual } from 'node:util'
import type {
  StorageV1TokenRequest,
  V1CSIDriverSpec,
  V1CSINodeDriver,
  V1CSIStorageCapacity,
  V1VolumeNodeResources,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  driverName,
  nonNegative,
  nonNegativeQuantity,
  qualifiedName,
  subdomain,
} from '#virtualapi/kinds/validation/basic-rules.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'
import { labelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  at,
  changes,
  each,
  fieldImmutable,
  fields,
  firstOf,
  immutable,
  must,
  nonEmpty,
  oneOf,
  optional,
  unique,
  validating,
  validatingChange,
  validatingSpec,
  type ObjectOf,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { dropFromSpec } from './drop-from-spec.ts'
import type { KindRules } from './kind-rules.ts'

type DriverSpec = Data<V1CSIDriverSpec>

const lifecycleMode = oneOf(['Persistent', 'Ephemeral'])
const tokenRequest = firstOf<Data<StorageV1TokenRequest>>(
  fields({ audience: unique() }),
  fields({
    expirationSeconds: all<number | undefined>(
      must((seconds: number) => seconds >= 600, 'may not specify a duration less than 10 minutes'),
      must((seconds: number) => seconds <= 2 ** 32, 'may not specify a duration larger than 2^32 seconds'),
    ),
  }),
)

const driverSpec = fields<DriverSpec>({
  fsGroupPolicy: oneOf(['File', 'None', 'ReadWriteOnceWithFSType']),
  tokenRequests: each(tokenRequest),
  // As upstream, whose path has no index.
  volumeLifecycleModes: each(at('..', lifecycleMode)),
})

export const csiDriverRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['nodeAllocatableUpdatePeriodSeconds']),
  prepareForUpdate(object, old) {
    // A new CSIDriver has no generation; its first change sets 1.
    if (!isDeepStrictEqual(object['spec'], old['spec'])) object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
  validate: validatingSpec(driverSpec),
  // As upstream, which misspells the first path.
  validateChange: validatingChange(
    changes<ObjectOf<DriverSpec>>({
      spec: changes({ attachRequired: at('../attachedRequired', immutable()), volumeLifecycleModes: immutable() }),
    }),
  ),
}

type Driver = Data<V1CSINodeDriver>
type Node = ObjectOf<{ readonly drivers: readonly Driver[] | null } | undefined>

const longestNodeId = 256

const driver = all<Driver>(
  fields({
    name: driverName,
    nodeID: all<string>(
      nonEmpty(),
      must((id) => byteLength(id) <= longestNodeId, `must be ${longestNodeId} characters or less`),
    ),
    allocatable: optional(fields<Data<V1VolumeNodeResources>>({ count: nonNegative })),
  }),
  unique('name', ({ name }) => name),
  // As upstream, whose path has neither the member nor the index.
  fields({ topologyKeys: each(at('../..', all<string>(nonEmpty(), unique(), qualifiedName))) }),
)
const drivers = each(driver)

const nodeRule: Rule<Node> = ({ spec }, report) => report.at('spec.drivers', drivers, spec?.drivers)

/** As upstream, which validates a changed CSINode twice. */
const nodeChange: Rule<Node, Node> = (node, report: Report, { spec: old }) => {
  report.check(nodeRule, node)
  const known = new Map(old?.drivers?.map((one) => [one.name, one]))
  for (const one of node.spec?.drivers ?? []) {
    const before = known.get(one.name)
    if (before !== undefined && !isDeepStrictEqual(one, before))
      report.invalidStruct('spec.drivers', 'storage.CSINodeDriver', one, fieldImmutable)
  }
}

export const csiNodeRules: KindRules = {
  validate: validating(nodeRule),
  validateChange: validatingChange(nodeChange),
}

type Capacity = Data<Omit<V1CSIStorageCapacity, 'metadata'>>

export const csiStorageCapacityRules: KindRules = {
  validate: validating(
    fields<Capacity>({
      nodeTopology: labelSelector,
      storageClassName: subdomain,
      capacity: optional(nonNegativeQuantity),
    }),
  ),
  validateChange: validatingChange(changes<Capacity>({ nodeTopology: immutable(), storageClassName: immutable() })),
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
