// metadata.managedFields of a write through the registry: apimachinery/managed-fields with the schema and versions of
// the kind.
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
 * The entries of an object that is about to be written in the form it is kept in; undefined: none. `next` has those of
 * `old`; `given` are those of the request.
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
 * The object with a configuration applied, in the form it is kept in and with its entries. `current` as it is kept;
 * undefined: it is created. Throws as `applyConfiguration`.
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

/** Subresources that write for others: they change no ownership. */
const silent = new Set(['binding', 'eviction'])

/** Sets the entries after this write. `given`: the entries that the client sent, before defaulting. */
export function setManagedFields(
  request: ManagedVersions,
  next: KubeObject,
  old: KubeObject | undefined,
  given: ObjectMeta['managedFields'],
): void {
  if (silent.has(request.subresource)) return
  // An empty list resets all entries, although its typed form is no list.
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

/** The object before its kind sets its status, where that counts as a write of its own. */
export function statusBefore({ definition }: ManagedVersions, next: KubeObject): KubeObject | undefined {
  return definition.strategy.statusManager === undefined ? undefined : { ...next, metadata: { ...next.metadata } }
}

/** Makes the kind the manager of the status that it has set since `before`. */
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
  // The same object for all writes through an endpoint: what was computed for one of them is found by it.
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
 * Entries of managedFields name a version that there is no more. As upstream, those of a built-in kind are dropped
 * alone; a custom resource loses all of them with the next update, and cannot be applied. Throws 500.
 */
function missing({ info }: ResourceDefinition, apiVersion: string): undefined {
  if (info.builtIn) return undefined
  throw statusError(500, '', `request to convert CR to an invalid group/version: ${apiVersion}`)
}

/** The other version may not know all fields: then nobody can be told apart. Throws 500. */
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

/** The fields that Go prints of an object without content. */
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
