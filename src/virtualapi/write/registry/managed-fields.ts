// metadata.managedFields of a write through the registry, computed by apimachinery/managed-fields with the schema and
// the versions of the kind.
import { timestamp } from '#async/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import {
  applyConfiguration,
  managedFieldsAfterUpdate,
  requireTyped,
  TypedError,
  type FieldType,
  type FieldWrite,
  type OwnershipContext,
} from '#apimachinery/managed-fields/index.ts'
import {
  apiVersionOf,
  cloneJson,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
} from '#apimachinery/meta/index.ts'
import { statusError } from '#apimachinery/status/index.ts'
import { ownershipTypeOf } from '#virtualapi/kinds/resources/ownership-type.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { decodeTyped } from '#virtualapi/kinds/resources/typed/decode.ts'
import { structOfKind } from '#virtualapi/kinds/resources/typed/go-types.ts'
import type { ManagedVersions } from './managed-versions.ts'

/**
 * The entries of `next`, an object in its stored form that is about to be written; undefined if it has none. `next` has
 * the entries of `old`; `given` are the entries of the request.
 */
export function managedFieldsOf(
  request: ManagedVersions,
  next: KubeObject,
  old: KubeObject | undefined,
  given: readonly ManagedFieldsEntry[] | undefined,
): ManagedFieldsEntry[] | undefined {
  const { definition } = request
  const live = old === undefined ? undefined : served(definition, old)
  return managedFieldsAfterUpdate(live, served(definition, next), given, fieldWriteOf(request))
}

/**
 * The stored form of the object with a configuration applied, with its new entries. `current`: the object as stored;
 * undefined if it is being created. Throws the errors of `applyConfiguration`.
 */
export function applied(
  request: ManagedVersions,
  config: JsonObject,
  current: KubeObject | undefined,
  { force }: { force: boolean },
): KubeObject {
  const { definition } = request
  const live = current === undefined ? undefined : served(definition, current)
  const { object, managedFields } = applyConfiguration(live, config, fieldWriteOf(request), { force })
  if (managedFields !== undefined) object.metadata.managedFields = managedFields
  return stored(definition, object)
}

/** Subresources whose writes change no ownership. */
const silent = new Set(['binding', 'eviction'])

/** Sets the entries after this write. `given`: the entries that the client sent, before defaulting. */
export function setManagedFields(
  request: ManagedVersions,
  next: KubeObject,
  old: KubeObject | undefined,
  given: ObjectMeta['managedFields'],
): void {
  if (silent.has(request.subresource)) return
  // An empty list in the request resets all entries, but typed decoding drops it from `next`.
  const said = given?.length === 0 ? given : next.metadata.managedFields
  // Entries that both objects share are not compared.
  setEntries(next, old?.metadata.managedFields)
  setEntries(next, managedFieldsOf(request, next, old, said))
}

/** Sets or removes the entries. */
export function setEntries(next: KubeObject, entries: ObjectMeta['managedFields']): void {
  if (entries === undefined) delete next.metadata.managedFields
  else next.metadata.managedFields = entries
}

/** A copy of the object before its kind sets the status; undefined for kinds whose status has no manager of its own. */
export function statusBefore({ definition }: ManagedVersions, next: KubeObject): KubeObject | undefined {
  return definition.strategy.statusManager === undefined ? undefined : { ...next, metadata: { ...next.metadata } }
}

/** Records the status manager of the kind as the owner of the status fields that the kind has set since `before`. */
export function noteStatusManager(request: ManagedVersions, next: KubeObject, before: KubeObject | undefined): void {
  const { statusManager } = request.definition.strategy
  if (before === undefined || statusManager === undefined || jsonEqual(before['status'], next['status'])) return
  before.metadata = { ...next.metadata }
  const context = { ...request.context, fieldManager: statusManager }
  const entries = managedFieldsOf({ ...request, context, subresource: 'status' }, next, before, undefined)
  if (entries !== undefined) next.metadata.managedFields = entries
}

function fieldWriteOf({ definition, context, subresource, convert }: ManagedVersions): FieldWrite {
  const { info } = definition
  // All writes through an endpoint share this object, because computed results are cached under it.
  const shared = ownershipContext(definition, subresource)
  return {
    apiVersion: apiVersionOf(info),
    kind: info.kind,
    subresource,
    manager: context.fieldManager,
    now: timestamp(context.now),
    type: ownershipTypeOf(definition),
    empty: emptyOf(definition),
    validate: !info.builtIn,
    context: convert === undefined ? shared : { ...shared, convert: converterByWebhook(definition, convert) },
  }
}

const contexts = new WeakMap<ResourceDefinition, Map<string, OwnershipContext>>()

function ownershipContext(definition: ResourceDefinition, subresource: string): OwnershipContext {
  let bySubresource = contexts.get(definition)
  if (bySubresource === undefined) {
    bySubresource = new Map()
    contexts.set(definition, bySubresource)
  }
  let context = bySubresource.get(subresource)
  if (context === undefined) {
    const filter = definition.strategy.ownableFields?.(subresource)
    context = { convert: converterFrom(definition), ...(filter === undefined ? {} : { filterFor: () => filter }) }
    bySubresource.set(subresource, context)
  }
  return context
}

function converterFrom(definition: ResourceDefinition): OwnershipContext['convert'] {
  const own = apiVersionOf(definition.info)
  return (typed, apiVersion) => {
    const object = typed.value as unknown as KubeObject
    if (object.apiVersion === apiVersion) return typed
    const from = object.apiVersion === own ? definition : definition.inVersion(object.apiVersion)
    const to = apiVersion === own ? definition : definition.inVersion(apiVersion)
    if (from === undefined || to === undefined) {
      missing(definition, apiVersion)
      return
    }
    const value = served(to, stored(from, cloneJson(object))) as unknown as JsonObject
    const type = ownershipTypeOf(to)
    if (!definition.info.builtIn) requireFitting(value, type)
    return { value, type }
  }
}

function converterByWebhook(
  definition: ResourceDefinition,
  convert: NonNullable<ManagedVersions['convert']>,
): OwnershipContext['convert'] {
  const own = apiVersionOf(definition.info)
  return (typed, apiVersion) => {
    const object = typed.value as unknown as KubeObject
    if (object.apiVersion === apiVersion) return typed
    const to = apiVersion === own ? definition : definition.inVersion(apiVersion)
    if (to === undefined) {
      missing(definition, apiVersion)
      return
    }
    const value = convert(object, apiVersion) as unknown as JsonObject
    const type = ownershipTypeOf(to)
    requireFitting(value, type)
    return { value, type }
  }
}

/**
 * Handles entries of managedFields that name a version which no longer exists. As upstream, a built-in kind loses only
 * these entries; a custom resource loses all entries with the next update and cannot be applied. Throws 500 for a
 * custom resource.
 */
function missing({ info }: ResourceDefinition, apiVersion: string): undefined {
  if (info.builtIn) return undefined
  throw statusError(500, '', `request to convert CR to an invalid group/version: ${apiVersion}`)
}

/**
 * Throws 500 if the schema of the other version does not know a field of the value: the owner of that field would be
 * unknown.
 */
function requireFitting(value: JsonObject, type: FieldType): void {
  try {
    requireTyped(value, type, { allowDuplicates: true })
  } catch (error) {
    throw error instanceof TypedError ? statusError(500, '', error.message, { cause: error }) : error
  }
}

function served({ fromStorage, info }: ResourceDefinition, object: KubeObject): KubeObject {
  if (fromStorage !== undefined) return fromStorage(object)
  const apiVersion = apiVersionOf(info)
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}

function stored({ toStorage, storageApiVersion }: ResourceDefinition, object: KubeObject): KubeObject {
  return toStorage?.(object) ?? { ...object, apiVersion: storageApiVersion }
}

const empties = new WeakMap<ResourceDefinition, JsonObject>()

/** An object without content, with the fields that Go always prints. */
function emptyOf(definition: ResourceDefinition): JsonObject {
  let empty = empties.get(definition)
  if (empty === undefined) empties.set(definition, (empty = emptyObject(definition)))
  return empty
}

function emptyObject({ info }: ResourceDefinition): JsonObject {
  const { builtIn, kind } = info
  const apiVersion = apiVersionOf(info)
  if (!builtIn) return { apiVersion, kind }
  const object: KubeObject = { apiVersion, kind, metadata: {} }
  const struct = structOfKind(apiVersion, kind)
  if (struct !== undefined) decodeTyped(object, struct)
  return object as unknown as JsonObject
}
