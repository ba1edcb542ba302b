// Changes of ownership by a write: the rules of structured-merge-diff, over sets that know nothing of Kubernetes.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { compareTyped, type Comparison } from './compare-typed.ts'
import {
  difference,
  emptySet,
  forEachPath,
  intersection,
  isEmptySet,
  isSubset,
  union,
  type FieldFilter,
  type FieldSet,
} from './field-set.ts'
import { shapeOf, type FieldType } from './field-type.ts'
import { fieldsOf } from './fields-of.ts'
import { fitToType, withNamedFields } from './fit-to-type.ts'
import { OwnershipConflicts, type Managers, type Owned, type OwnershipConflict } from './managers.ts'
import { mergeTyped } from './merge-typed.ts'
import { removeFields } from './remove-fields.ts'

export interface TypedObject {
  readonly value: JsonValue
  readonly type: FieldType
}

/** The facts about a kind that the rules need. */
export interface OwnershipContext {
  /**
   * The object in another version; undefined if the version no longer exists: its managers then own nothing. Throws if
   * the object cannot be converted. Pure.
   */
  convert(object: TypedObject, apiVersion: string): TypedObject | undefined
  /** The filter of the fields that writes through this endpoint can own; undefined if all can be owned. */
  filterFor?(apiVersion: string): FieldFilter | undefined
}

/** A write by `manager` in one version of the API. */
export interface OwnershipWrite {
  readonly live: TypedObject
  readonly apiVersion: string
  readonly managers: Managers
  readonly manager: string
}

/**
 * The owners after `next` has replaced `live`: the manager owns the changed fields, and no other manager owns them any
 * more. Throws a TypedError for objects that do not fit their type.
 */
export function managersAfterUpdate(
  { live, apiVersion, managers, manager }: OwnershipWrite,
  next: TypedObject,
  context: OwnershipContext,
): Managers {
  const fitting = fitManagers(live, managers, context)
  const { result, comparison } = takeChanges({ live, apiVersion, managers: fitting, manager }, next, context, true)
  const before = result.get(manager)?.fields ?? emptySet
  const owned = union(union(difference(before, comparison.removed), comparison.modified), comparison.added)
  const fields = context.filterFor?.(apiVersion)?.(owned) ?? owned
  const after = new Map(result)
  if (isEmptySet(fields)) after.delete(manager)
  else after.set(manager, { fields, apiVersion, applied: false })
  return after
}

/**
 * The fields in which `next` differs from `live`, as far as writes through this endpoint can own them: the first writer
 * owns all of them.
 */
export function changedFields(
  live: TypedObject,
  next: TypedObject,
  apiVersion: string,
  context: OwnershipContext,
): FieldSet {
  const filter = context.filterFor?.(apiVersion)
  const { modified, added } = compareTyped(live.value, next.value, live.type)
  const changed = union(modified, added)
  return filter === undefined ? changed : filter(changed)
}

/**
 * `live` with an applied configuration, and its owners. Fields that the manager applied before but not now are removed,
 * unless another manager owns them. The object is undefined if it is unchanged. Throws OwnershipConflicts unless
 * `force`, or a TypedError.
 */
export function applyOwned(
  write: OwnershipWrite,
  config: TypedObject,
  context: OwnershipContext,
  { force }: { force: boolean },
): { object: JsonValue | undefined; managers: Managers } {
  const { live, apiVersion, manager } = write
  const managers = new Map(fitManagers(live, write.managers, context))
  const merged = {
    value: inContext('failed to merge config', () => mergeTyped(live.value, config.value, live.type)),
    type: live.type,
  }
  const last = managers.get(manager)
  const wanted = fieldsOf(config.value, config.type)
  const fields = context.filterFor?.(apiVersion)?.(wanted) ?? wanted
  managers.set(manager, { fields, apiVersion, applied: true })
  // The configuration has all fields of the last one, so nothing is removed.
  const keepsAll = last !== undefined && isSubset(last.fields, fields) && areOf(managers, apiVersion)
  const pruned =
    keepsAll && isFilledMap(merged)
      ? merged
      : inContext('failed to prune fields', () => prune(merged, managers, { manager, last }, context))
  const { result } = takeChanges({ live, apiVersion, managers, manager }, pruned, context, force)
  return { object: jsonEqual(live.value, pruned.value) ? undefined : pruned.value, managers: result }
}

/** Whether all sets are in the form of one version, so that nothing is lost between versions. */
function areOf(managers: Managers, version: string): boolean {
  for (const { apiVersion } of managers.values()) if (apiVersion !== version) return false
  return true
}

/**
 * Whether the removal of no fields leaves the value unchanged, which is not so for empty values and values owned as a
 * whole.
 */
function isFilledMap({ value, type }: TypedObject): boolean {
  return (
    shapeOf(type, value) === 'map' && type.map?.atomic === false && isJsonObject(value) && Object.keys(value).length > 0
  )
}

function inContext<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
}

/** Takes the changed fields from all their owners except `manager`. */
function takeChanges(
  { live, apiVersion, managers, manager }: OwnershipWrite,
  next: TypedObject,
  context: OwnershipContext,
  force: boolean,
): { result: Managers; comparison: Comparison } {
  const comparison = filtered(compareTyped(live.value, next.value, live.type), context.filterFor?.(apiVersion))
  const changes = new Map<string, Changes | undefined>([[apiVersion, changesOf(comparison)]])
  const result = new Map<string, Owned>()
  const conflicts: OwnershipConflict[] = []
  for (const [name, owned] of managers) {
    if (name === manager) {
      if (!isEmptySet(owned.fields)) result.set(name, owned)
      continue
    }
    if (!changes.has(owned.apiVersion))
      changes.set(owned.apiVersion, convertedChanges(live, next, owned.apiVersion, context))
    const change = changes.get(owned.apiVersion)
    // In a version that no longer exists, no manager owns anything.
    if (change === undefined) continue
    const taken = intersection(owned.fields, change.written)
    forEachPath(taken, (path) => conflicts.push({ manager: name, path }))
    const fields = difference(difference(owned.fields, taken), change.removed)
    if (!isEmptySet(fields)) result.set(name, fields === owned.fields ? owned : { ...owned, fields })
  }
  if (!force && conflicts.length > 0) throw new OwnershipConflicts(conflicts)
  return { result, comparison }
}

interface Changes {
  readonly written: FieldSet
  readonly removed: FieldSet
}

function changesOf({ modified, added, removed }: Comparison): Changes {
  return { written: union(modified, added), removed }
}

function convertedChanges(
  live: TypedObject,
  next: TypedObject,
  apiVersion: string,
  context: OwnershipContext,
): Changes | undefined {
  const before = inContext('failed to convert old object', () => context.convert(live, apiVersion))
  const after = inContext('failed to convert new object', () => context.convert(next, apiVersion))
  if (before === undefined || after === undefined) return undefined
  return changesOf(filtered(compareTyped(before.value, after.value, before.type), context.filterFor?.(apiVersion)))
}

function filtered(comparison: Comparison, filter: FieldFilter | undefined): Comparison {
  if (filter === undefined) return comparison
  const { removed, modified, added } = comparison
  return { removed: filter(removed), modified: filter(modified), added: filter(added) }
}

interface Applying {
  readonly manager: string
  /** The fields that the manager applied before. */
  readonly last: Owned | undefined
}

/** `merged` without the fields that the manager applied last but not now, and that no other manager owns. */
function prune(
  merged: TypedObject,
  managers: Managers,
  { manager, last }: Applying,
  context: OwnershipContext,
): TypedObject {
  if (last === undefined || isEmptySet(last.fields)) return merged
  const converted = inContext('failed to convert merged object to last applied version', () =>
    context.convert(merged, last.apiVersion),
  )
  if (converted === undefined) return merged
  const { value, type } = converted
  const without = { value: removeFields(value, withNamedFields(last.fields, type), type), type }
  const withOwned = addBackOwned(converted, without, { version: last.apiVersion, managers }, context)
  const pruned = addBackDangling(converted, withOwned, last, context)
  const version = managers.get(manager)?.apiVersion ?? last.apiVersion
  return context.convert(pruned, version) ?? pruned
}

/** Adds back the fields that other managers own, or the manager itself owns now. */
function addBackOwned(
  merged: TypedObject,
  pruned: TypedObject,
  { version, managers }: { version: string; managers: Managers },
  context: OwnershipContext,
): TypedObject {
  const byVersion = new Map<string, FieldSet>()
  // The version of the write comes first, because a conversion may need the removed fields.
  if ([...managers.values()].some(({ apiVersion }) => apiVersion === version)) byVersion.set(version, emptySet)
  for (const { apiVersion, fields } of managers.values())
    byVersion.set(apiVersion, union(byVersion.get(apiVersion) ?? emptySet, fields))
  let [whole, rest] = [merged, pruned]
  for (const [apiVersion, owned] of byVersion) {
    const converted = (what: string, object: TypedObject): TypedObject | undefined =>
      inContext(`failed add back owned items: failed to convert ${what} object at version ${apiVersion}`, () =>
        context.convert(object, apiVersion),
      )
    const all = converted('merged', whole)
    if (all === undefined) continue
    whole = all
    const some = converted('pruned', rest)
    if (some === undefined) continue
    const named = (set: FieldSet): FieldSet => withNamedFields(set, all.type)
    const kept = union(named(fieldsOf(some.value, some.type)), named(owned))
    const gone = difference(named(fieldsOf(all.value, all.type)), kept)
    rest = { value: removeFields(all.value, gone, all.type), type: all.type }
  }
  return rest
}

/** Adds back the fields that the manager never applied: fields without an owner stay. */
function addBackDangling(
  merged: TypedObject,
  pruned: TypedObject,
  last: Owned,
  context: OwnershipContext,
): TypedObject {
  const converted = inContext(
    'failed add back dangling items: failed to convert pruned object to last applied version',
    () => context.convert(pruned, last.apiVersion),
  )
  if (converted === undefined) return merged
  const { value, type } = merged
  const named = (set: FieldSet): FieldSet => withNamedFields(set, type)
  const gone = difference(named(fieldsOf(value, type)), named(fieldsOf(converted.value, converted.type)))
  return { value: removeFields(value, intersection(gone, named(last.fields)), type), type }
}

/** The managers with sets that fit the current types, without managers of versions that no longer exist. */
function fitManagers(live: TypedObject, managers: Managers, context: OwnershipContext): Managers {
  const result = new Map<string, Owned>()
  const types = new Map<string, FieldType | undefined>()
  for (const [name, owned] of managers) {
    const { apiVersion, fields } = owned
    if (!types.has(apiVersion)) types.set(apiVersion, context.convert(live, apiVersion)?.type)
    const type = types.get(apiVersion)
    if (type === undefined) continue
    const fitting = fitToType(fields, type)
    result.set(name, fitting === fields ? owned : { ...owned, fields: fitting })
  }
  return result
}
