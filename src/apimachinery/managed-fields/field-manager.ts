// metadata.managedFields of a write, as kube-apiserver's chain of managers makes it (apimachinery/util/managedfields).
import {
  isJsonObject,
  parseApiVersion,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type ManagedFieldsEntry,
} from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { badRequest, isStatusError, statusError } from '#apimachinery/status/index.ts'
import { capUpdateManagers } from './cap-update-managers.ts'
import { conflictStatus } from './conflict-status.ts'
import { createdFields, unowned } from './created-fields.ts'
import { difference, equalSets, isEmptySet, union } from './field-set.ts'
import { conflictsBesidesLastApplied, updateLastApplied } from './last-applied.ts'
import { decodeManaged, encodeManaged, managerIdentifier, noManagers, type Managed } from './managed-entries.ts'
import { OwnershipConflicts, type Owned } from './managers.ts'
import { applyOwned, managersAfterUpdate, type OwnershipContext, type TypedObject } from './ownership-rules.ts'
import type { FieldType } from './field-type.ts'
import { TypedError } from './typed-errors.ts'
import { requireTyped } from './validate-typed.ts'

/** The endpoint of a write, and its manager. */
export interface FieldWrite {
  /** The version that the request names; every object here is in the form of this version. */
  readonly apiVersion: string
  readonly kind: string
  /** Empty for the object itself. */
  readonly subresource: string
  readonly manager: string
  /** RFC 3339, in seconds. */
  readonly now: string
  readonly type: FieldType
  /** An object of this kind without any fields set: Go prints some of its members. */
  readonly empty: JsonObject
  /** Whether the objects must be checked against their type; false for built-in kinds, which are decoded by it. */
  readonly validate: boolean
  readonly context: OwnershipContext
}

type Entries = readonly ManagedFieldsEntry[]

/**
 * The entries of `next`, which replaces `live`; undefined if there are none. `given` are the entries in the request: an
 * empty list resets all ownership, and malformed entries, or those of a write to a subresource, are ignored. Objects
 * are compared as they are: entries that both have should be the same list. Never throws: an object that does not fit
 * its type or cannot be converted has no entries.
 */
export function managedFieldsAfterUpdate(
  live: KubeObject | undefined,
  next: KubeObject,
  given: Entries | undefined | null,
  write: FieldWrite,
): ManagedFieldsEntry[] | undefined {
  try {
    const managed = managedBefore(live?.metadata.managedFields, given, write.subresource !== '')
    if (managed.managers.size === 0 && live?.metadata.uid) return undefined
    if (managed.managers.size === 0 && live === undefined) return entriesOfCreator(next, write)
    return encodeManaged(updated(typedOf(live, write), typedOf(next, write), managed, write))
  } catch {
    return undefined
  }
}

/** The entries of a new object without earlier owners: the fast path of most creations. */
function entriesOfCreator(next: KubeObject, write: FieldWrite): ManagedFieldsEntry[] | undefined {
  const { apiVersion, manager, now, type, subresource } = write
  const object = next as unknown as JsonObject
  if (write.validate) requireTyped(object, type, { allowDuplicates: true })
  const fieldsV1 = createdFields(object, write)
  if (isEmptySet(fieldsV1)) return undefined
  const entry = { manager: manager || 'unknown', operation: 'Update' as const, apiVersion, time: now }
  return [{ ...entry, fieldsType: 'FieldsV1', fieldsV1, ...(subresource === '' ? {} : { subresource }) }]
}

/** The entries that count as those before the write. */
function managedBefore(live: Entries | undefined, next: Entries | undefined | null, isSubresource: boolean): Managed {
  const fromLive = (): Managed => tryDecode(live ?? []) ?? noManagers
  if (isSubresource || next === undefined || next === null || next === live) return fromLive()
  if (isReset(next)) return noManagers
  // A client that has not changed the entries sends them back as it read them.
  if (jsonEqual(next, live)) return fromLive()
  const given = tryDecode(next, { isOurs: false })
  return given === undefined || given.managers.size === 0 ? fromLive() : given
}

function tryDecode(entries: Entries, { isOurs = true } = {}): Managed | undefined {
  try {
    return decodeManaged(entries, { isOurs })
  } catch {
    return undefined
  }
}

/** Whether the entries are an empty list or one empty entry, by which a client resets all ownership. */
function isReset(entries: Entries): boolean {
  return entries.length === 0 || (entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0)
}

const currentOperation = 'current-operation'

function updated(live: TypedObject, next: TypedObject, managed: Managed, write: FieldWrite): Managed {
  const { apiVersion, manager, now, context } = write
  if (write.validate) for (const { value, type } of [next, live]) requireTyped(value, type, { allowDuplicates: true })
  const state = { live, apiVersion, managers: managed.managers, manager: currentOperation }
  const after = stripMeta(managersAfterUpdate(state, next, context), currentOperation)
  const changed = after.get(currentOperation)
  if (changed === undefined) return capUpdateManagers({ managers: after, times: managed.times })
  const identifier = identifierOf(write, manager, 'Update')
  after.delete(currentOperation)
  const before = after.get(identifier)
  after.set(identifier, before === undefined ? changed : { ...changed, fields: union(changed.fields, before.fields) })
  return capUpdateManagers({ managers: after, times: new Map(managed.times).set(identifier, now) })
}

/**
 * `live` with the configuration applied, and its entries. `live` is undefined if the object does not exist yet. Throws
 * 400 for a configuration of another version or with managedFields, 409 for conflicts unless `force`.
 */
export function applyConfiguration(
  live: KubeObject | undefined,
  config: JsonObject,
  write: FieldWrite,
  { force }: { force: boolean },
): { object: KubeObject; managedFields: ManagedFieldsEntry[] | undefined } {
  requireKind(config, write)
  const typed = typedOf(live, write)
  let managed = decodeManaged(live?.metadata.managedFields ?? [], { isOurs: true })
  if (managed.managers.size === 0)
    managed = updated(typedOf(undefined, write), typed, managed, { ...write, manager: 'before-first-apply' })
  requireNoManagedFields(config)
  if (write.validate) requireTypedAs('live', typed, { allowDuplicates: true }, write)
  requireTypedAs('patch', { value: config, type: write.type }, { allowDuplicates: false }, write)
  const { object, managed: after } = applied(typed, managed, write, { config, force })
  const result = withoutManagedFields(object ?? typed.value) as unknown as KubeObject
  if (write.manager === 'kubectl') updateLastApplied(result, config)
  return { object: result, managedFields: encodeManaged(after) }
}

function applied(
  live: TypedObject,
  managed: Managed,
  write: FieldWrite,
  { config, force }: { config: JsonObject; force: boolean },
): { object: JsonValue | undefined; managed: Managed } {
  const { apiVersion, now, type, context } = write
  const identifier = identifierOf(write, write.manager, 'Apply')
  const state = { live, apiVersion, managers: managed.managers, manager: identifier }
  const run = (forced: boolean) => applyOwned(state, { value: config, type }, context, { force: forced })
  const { object, managers } = orForKubectl(run, live, write, force)
  const times = object === undefined ? managed.times : new Map(managed.times).set(identifier, now)
  return { object, managed: { managers: sameSetAsBefore(stripMeta(managers, identifier), identifier, managed), times } }
}

/** The owners with the manager's former set if it owns the same fields as before: that set is known to be sorted. */
function sameSetAsBefore(after: Map<string, Owned>, manager: string, { managers }: Managed): Map<string, Owned> {
  const [owned, before] = [after.get(manager), managers.get(manager)]
  if (owned !== undefined && before !== undefined && equalSets(owned.fields, before.fields))
    after.set(manager, { ...before, ...owned, fields: before.fields })
  return after
}

/** kubectl may change fields that it applied on the client before, whatever manager owns them. */
function orForKubectl<T>(run: (force: boolean) => T, live: TypedObject, write: FieldWrite, force: boolean): T {
  try {
    return run(force)
  } catch (error) {
    if (isTypedError(error)) throw statusError(500, '', error.message)
    if (!(error instanceof OwnershipConflicts)) throw error
    const { conflicts } = error
    const left =
      write.manager === 'kubectl' ? conflictsBesidesLastApplied(conflicts, live, write.apiVersion) : conflicts
    if (left.length > 0) throw conflictStatus(left)
    return run(true)
  }
}

/** Whether the error means that an object does not fit its type or cannot be converted. */
function isTypedError(error: unknown): error is Error {
  if (!(error instanceof Error) || isStatusError(error)) return false
  return error instanceof TypedError || isStatusError(error.cause) || isTypedError(error.cause)
}

function requireKind(config: JsonObject, { apiVersion, kind }: FieldWrite): void {
  if (config['apiVersion'] === apiVersion && config['kind'] === kind) return
  throw badRequest(`invalid object type: ${kindText(config['apiVersion'], config['kind'])}`)
}

function requireNoManagedFields({ metadata }: JsonObject): void {
  if (isJsonObject(metadata) && metadata['managedFields'] != null)
    throw badRequest('metadata.managedFields must be nil')
}

function requireTypedAs(
  what: 'live' | 'patch',
  { value, type }: TypedObject,
  options: { allowDuplicates: boolean },
  { apiVersion, kind }: FieldWrite,
): void {
  try {
    requireTyped(value, type, options)
  } catch (error) {
    const { name = '', namespace = '' } = (isJsonObject(value) ? value['metadata'] : {}) as Record<string, string>
    throw statusError(
      500,
      '',
      `failed to create typed ${what} object (${namespace}/${name}; ${kindText(apiVersion, kind)}): ${(error as Error).message}`,
      { cause: error },
    )
  }
}

/** Go's text of a GroupVersionKind. */
function kindText(apiVersion: JsonValue | undefined, kind: JsonValue | undefined): string {
  const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')
  const { group, version } = parseApiVersion(text(apiVersion))
  return `${group}/${version}, Kind=${text(kind)}`
}

function identifierOf({ apiVersion, subresource }: FieldWrite, manager: string, operation: 'Apply' | 'Update'): string {
  return managerIdentifier({ manager: manager || 'unknown', operation, apiVersion, subresource })
}

function typedOf(object: KubeObject | undefined, { type, empty }: FieldWrite): TypedObject {
  return { value: object === undefined ? empty : (object as unknown as JsonObject), type }
}

function withoutManagedFields(object: JsonValue): JsonObject {
  const { metadata, ...rest } = object as JsonObject
  if (!isJsonObject(metadata)) return object as JsonObject
  const { managedFields: _, ...meta } = metadata
  return { ...rest, metadata: meta }
}

function stripMeta(managers: ReadonlyMap<string, Owned>, manager: string): Map<string, Owned> {
  const result = new Map(managers)
  const owned = result.get(manager)
  if (owned === undefined) return result
  const fields = difference(owned.fields, unowned)
  if (isEmptySet(fields)) result.delete(manager)
  else result.set(manager, { ...owned, fields })
  return result
}
