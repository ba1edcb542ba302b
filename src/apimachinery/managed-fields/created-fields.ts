// Fields owned by the creator of an object: every field of the object that an empty object does not have. The set does
// not depend on most values, so the last sets of each kind are kept.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { fieldOf, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { addedFields } from './added-fields.ts'
import { difference, setOf, type FieldSet } from './field-set.ts'
import type { FieldType } from './field-type.ts'
import { sortForReuse } from './fields-v1.ts'
import { changedFields, type OwnershipContext } from './ownership-rules.ts'

/** The fields of an object's identity, which no manager owns. */
export const unowned = setOf(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((member) => ['f:metadata', `f:${member}`]),
)

interface Creation {
  readonly apiVersion: string
  readonly type: FieldType
  /** An object of the kind without any fields set. */
  readonly empty: JsonObject
  readonly context: OwnershipContext
}

interface Remembered {
  readonly type: FieldType
  readonly empty: JsonObject
  /** All fields of an object. */
  readonly all: FieldSet
  /** For each leaf of the empty object, whether the object has the same value. */
  readonly asEmpty: readonly boolean[]
  readonly created: FieldSet
}

const rememberedOf = new WeakMap<OwnershipContext, Remembered[]>()
/** Maximum number of sets remembered for one endpoint of a kind. */
const maxRemembered = 8

/**
 * The fields that the creator of this object owns, sorted. Throws a TypedError for an object that does not fit its
 * type.
 */
export function createdFields(object: JsonObject, creation: Creation): FieldSet {
  const { apiVersion, type, empty, context } = creation
  const compared = (): FieldSet =>
    sortForReuse(
      difference(changedFields({ value: empty, type }, { value: object, type }, apiVersion, context), unowned),
    )
  const all = addedFields(object, type)
  if (all === undefined) return compared()
  const asEmpty = leavesOf(empty).map(({ path, value }) => hasValue(object, path, value))
  const remembered = rememberedOf.get(context) ?? []
  const known = remembered.find(
    (one) =>
      one.all === all &&
      one.type === type &&
      one.empty === empty &&
      one.asEmpty.every((same, i) => same === asEmpty[i]),
  )
  if (known !== undefined) return known.created
  const created = compared()
  remembered.unshift({ type, empty, all, asEmpty, created })
  if (remembered.length > maxRemembered) remembered.pop()
  rememberedOf.set(context, remembered)
  return created
}

interface Leaf {
  readonly path: readonly string[]
  readonly value: JsonValue
}

const leaves = new WeakMap<JsonObject, readonly Leaf[]>()

/** The values in an empty object that have no members. */
function leavesOf(empty: JsonObject): readonly Leaf[] {
  let known = leaves.get(empty)
  if (known === undefined) leaves.set(empty, (known = [...leavesBelow(empty, [])]))
  return known
}

function* leavesBelow(value: JsonValue, path: readonly string[]): Generator<Leaf> {
  if (!isJsonObject(value) || Object.keys(value).length === 0) yield { path, value }
  else for (const [name, member] of Object.entries(value)) yield* leavesBelow(member, [...path, name])
}

function hasValue(object: JsonObject, path: readonly string[], value: JsonValue): boolean {
  let found: JsonValue | undefined = object
  for (const name of path) found = isJsonObject(found) ? fieldOf(found, name) : undefined
  return jsonEqual(found, value)
}
