// The Strategy of built-in kinds, made of facts from a table, decoding by generated Go structs, and rules from rules/.
import { groupResourceText, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Strategy } from './resources/resource-definition.ts'
import type { ResourceInfo } from './resources/resource-info.ts'
import { factsOf } from './facts.ts'
import type { KindRules } from './rules/kind-rules.ts'
import { rulesOf, statusCauses } from './rules/index.ts'
import { selectableFieldsOf } from './selectable-fields.ts'
import { storageOf } from './conversions.ts'
import { ownableFieldsOf } from './reset-fields.ts'
import { applyTypedDefaults } from './defaults/apply-defaults.ts'
import { dropDisabledMembers } from './defaults/disabled-pod-members.ts'
import { podSpecOf } from './pod-spec-of.ts'
import { decodeTyped } from './resources/typed/decode.ts'
import { structOfKind } from './resources/typed/go-types.ts'
import { apiVersionOf } from '#apimachinery/meta/index.ts'

export * from './conversions.ts'
export * from './scale.ts'
export { qosClassOf } from './rules/pod-qos.ts'
export { allocationFor } from './rules/service-allocation.ts'

const strategies = new Map<string, Strategy>()

/** The Strategy of a built-in resource. The same resource version always gets the same object. */
export function builtInStrategy(info: ResourceInfo): Strategy {
  const key = `${apiVersionOf(info)}/${info.resource}`
  let strategy = strategies.get(key)
  if (strategy === undefined) {
    strategy = createStrategy(info)
    strategies.set(key, strategy)
  }
  return strategy
}

function createStrategy(info: ResourceInfo): Strategy {
  const groupResource = groupResourceText(info)
  // The write path handles objects in their storage version.
  const { storageApiVersion } = storageOf(info)
  const rules = rulesOf([apiVersionOf(info), storageApiVersion], info.kind)
  const struct = structOfKind(storageApiVersion, info.kind)
  const { prepareForCreate, prepareForUpdate, gracePeriodSeconds, countsChange, isRenewal } = rules
  const { deletedByController = false, keepsStatusOnCreate = false } = rules
  return {
    ...factsOf(info),
    deletedByController,
    keepsStatusOnCreate,
    ...(countsChange ? { countsChange } : {}),
    ...(isRenewal ? { isRenewal } : {}),
    ...warningsBy(rules),
    statusMembers: ['status'],
    hasStatus: info.subresources.some(({ name }) => name === 'status'),
    selectableFields: selectableFieldsOf(groupResource),
    applyDefaults(object) {
      rules.beforeDefaults?.(object)
      if (struct === undefined) return
      decodeTyped(object, struct)
      applyTypedDefaults(struct, object as unknown as JsonObject)
    },
    prepareForCreate(object, context) {
      dropDisabled(rules, object)
      prepareForCreate?.(object, context)
    },
    prepareForUpdate(object, old, context, subresource) {
      dropDisabled(rules, object)
      prepareForUpdate?.(object, old, context, subresource)
    },
    ...(gracePeriodSeconds ? { gracePeriodSeconds } : {}),
    ownableFields: (subresource) => ownableFieldsOf(groupResource, subresource),
    validateCreate: (object, context) => rules.validate?.(object, undefined, context) ?? [],
    validateUpdate(object, old, context, subresource) {
      if (subresource === '') {
        const causes = rules.validate?.(object, old, context) ?? []
        const repeated = rules.validatesUpdateTwice === true ? causes : []
        return [...causes, ...repeated, ...(rules.validateChange?.(object, old, context) ?? [])]
      }
      return [
        ...(subresource === 'status' ? statusCauses(storageApiVersion, object, old) : []),
        ...(rules.validateSubresource?.(object, old, subresource) ?? []),
      ]
    },
  }
}

/** Drops the fields whose feature gate is off. */
function dropDisabled(rules: KindRules, object: KubeObject): void {
  rules.dropDisabled?.(object)
  const podSpec = podSpecOf(object)
  if (podSpec !== undefined) dropDisabledMembers(podSpec)
}

function warningsBy(rules: KindRules): Pick<Strategy, 'warningsOf'> {
  if (rules.warningsOf === undefined && rules.statusWarningsOf === undefined) return {}
  return {
    warningsOf(object, old, _context, subresource) {
      if (subresource === 'status') return rules.statusWarningsOf?.(object) ?? []
      return subresource === '' || subresource === 'scale' ? (rules.warningsOf?.(object, old) ?? []) : []
    },
  }
}
