// metadata.managedFields of a write through the registry: the engine of apimachinery/managed-fields, told of the kind.
import { timestamp } from '../../async/index.ts'
import {
  applyConfiguration,
  managedFieldsAfterUpdate,
  type FieldWrite,
  type OwnershipContext,
} from '../../apimachinery/managed-fields/index.ts'
import {
  apiVersionOf,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
} from '../../apimachinery/meta/index.ts'
import { ownershipTypeOf } from '../resources/ownership-type.ts'
import type { RequestContext, ResourceDefinition } from '../resources/resource-definition.ts'
import { decodeTyped } from '../resources/typed/decode.ts'
import { structOfKind } from '../resources/typed/go-types.ts'

interface FieldRequest {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly subresource: string
}

/**
 * The entries of an object that is about to be written in the form it is kept in; undefined: none. `next` has those of
 * `old`; `given` are those of the request.
 */
export function managedFieldsOf(
  request: FieldRequest,
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
  request: FieldRequest,
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

function fieldWriteOf({ definition, context, subresource }: FieldRequest): FieldWrite {
  const { info } = definition
  return {
    apiVersion: apiVersionOf(info),
    kind: info.kind,
    subresource,
    manager: context.fieldManager,
    now: timestamp(context.now),
    type: ownershipTypeOf(definition),
    empty: emptyOf(definition),
    validate: !info.builtIn,
    context: ownershipContext(definition, subresource),
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
    if (from === undefined || to === undefined) return undefined
    const converted = served(to, stored(from, structuredClone(object)))
    return { value: converted as unknown as JsonObject, type: ownershipTypeOf(to) }
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

const empties = new Map<string, JsonObject>()

/** What Go prints of an object of a built-in kind that says nothing. */
function emptyOf({ info }: ResourceDefinition): JsonObject {
  if (!info.builtIn) return nothing
  const apiVersion = apiVersionOf(info)
  const key = `${apiVersion}/${info.kind}`
  let empty = empties.get(key)
  if (empty === undefined) {
    const object: KubeObject = { apiVersion, kind: info.kind, metadata: {} }
    const struct = structOfKind(apiVersion, info.kind)
    if (struct !== undefined) decodeTyped(object, struct)
    empty = object as unknown as JsonObject
    empties.set(key, empty)
  }
  return empty
}

const nothing: JsonObject = {}
