// The last steps of a write: they store, mark or delete the object and set the result for the client.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { sameBesidesTimes } from '#apimachinery/managed-fields/index.ts'
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { alreadyExists } from '#apimachinery/status/index.ts'
import { isStoreError } from '#store/index.ts'
import {
  decodeMetadata,
  decodeObject,
  encodeObject,
  hasApiVersion,
  stampRevision,
} from '#virtualapi/kinds/resources/object-bytes.ts'
import { isConverted } from '#virtualapi/write/conversion/conversions.ts'
import {
  defaultPolicy,
  finalizersFor,
  finalState,
  gracePeriodOf,
  hasSpecFinalizers,
  markTerminating,
} from './deletion.ts'
import { fromStoreError } from './store-errors.ts'
import type { Create, Deletion, RegistryTarget, Update, Written } from './write.ts'

/** Stores a new object. */
export async function storeNew(create: Create): Promise<void> {
  const { target, object, dependencies } = create
  const { forms } = dependencies
  const { definition, context, signal, namespace } = target
  const name = object.metadata.name ?? ''
  const value = encodeObject(isConverted(definition) ? await forms.stored(target, object) : object)
  if (context.dryRun) {
    const existing = existingObjectError(target, name)
    if (existing !== undefined) throw existing
    create.result = { object, bytes: await forms.shown(target, value), created: true }
    return
  }
  try {
    const entry = await context.objects.create({ resource: definition.storageKey, namespace, name }, value, { signal })
    object.metadata.resourceVersion = String(entry.revision)
    const bytes = isConverted(definition) ? await forms.shown(target, entry.bytes) : entry.bytes
    create.result = { object, bytes, created: true }
  } catch (error) {
    const existing = isStoreError(error, 'KeyExists') ? existingObjectError(target, name) : undefined
    throw existing ?? fromStoreError(error, definition.info, name)
  }
}

/** The AlreadyExists error if an object of this name exists, else undefined. */
function existingObjectError({ definition, context, namespace }: RegistryTarget, name: string): Error | undefined {
  const entry = context.objects.get(definition.storageKey, namespace, name)
  if (entry === undefined) return undefined
  const ending = decodeMetadata(entry.bytes).deletionTimestamp !== undefined
  return alreadyExists(definition.info, name, { ending })
}

/**
 * Stores a changed object. Deletes it instead if it is being deleted and no finalizer or grace period holds it any
 * more.
 */
export async function storeChanged(update: Update): Promise<void> {
  update.result = await writtenUpdate(update)
}

async function writtenUpdate({ target, entry, old, object, dependencies }: Update): Promise<Written> {
  const { forms } = dependencies
  const { definition, context, signal, deferrable = false } = target
  const { resourceVersion: _, ...meta } = old.metadata
  delete object.metadata.resourceVersion
  const { key, revision } = entry
  keepTimes(object, meta, old)
  const stored = isConverted(definition) ? await forms.stored(target, object) : object
  const before = isConverted(definition) ? withoutRevision(decodeObject(entry.bytes)) : { ...old, metadata: meta }
  // An update that changes nothing writes nothing and makes no event: GitOps tools and controllers rely on this. As
  // upstream, such an update does write an object that is stored in another version, because clients migrate stored
  // objects in this way.
  if (
    jsonEqual(before, stored) &&
    (definition.complete === undefined || hasApiVersion(entry.bytes, stored.apiVersion))
  ) {
    object.metadata.resourceVersion = String(revision)
    return { object, bytes: await forms.shown(target, entry.bytes), created: false }
  }
  const value = encodeObject(stored)
  if (context.dryRun) {
    object.metadata.resourceVersion = String(revision)
    return { object, bytes: await forms.shown(target, stampRevision(value, revision)), created: false }
  }
  if (isGone(object)) {
    await context.objects.delete(key, { signal, ifRevision: revision })
    // Watchers get the revision of the deletion; the client that removed the last finalizer gets the last stored
    // revision.
    object.metadata.resourceVersion = String(revision)
    return { object, bytes: stampRevision(encodeObject(object), revision), created: false }
  }
  const renewal = definition.strategy.isRenewal?.(object, old) ?? false
  const written = await context.objects.update(key, value, { signal, ifRevision: revision, deferrable, renewal })
  object.metadata.resourceVersion = String(written.revision)
  return { object, bytes: await forms.shown(target, written.bytes), created: false }
}

/** Keeps the old managedFields if the update would change nothing but the times of their entries. */
function keepTimes(next: KubeObject, meta: ObjectMeta, old: KubeObject): void {
  const { managedFields } = next.metadata
  if (meta.managedFields === undefined || !sameBesidesTimes(meta.managedFields, managedFields)) return
  const candidate = { ...next, metadata: { ...next.metadata, managedFields: meta.managedFields } }
  if (jsonEqual({ ...old, metadata: meta }, candidate)) next.metadata.managedFields = meta.managedFields
}

function withoutRevision({ metadata, ...object }: KubeObject): KubeObject {
  const { resourceVersion: _, ...rest } = metadata
  return { ...object, metadata: rest }
}

/** True if the object is being deleted and no finalizer, grace period or content of its own holds it. */
function isGone(object: KubeObject): boolean {
  const { finalizers = [], deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata
  return (
    deletionTimestamp !== undefined &&
    finalizers.length === 0 &&
    deletionGracePeriodSeconds === 0 &&
    !hasSpecFinalizers(object)
  )
}

/** Deletes the object, or marks it as being deleted while finalizers, a grace period or its own content keep it. */
export async function removeOrMark(deletion: Deletion): Promise<void> {
  const { target, object, options } = deletion
  const { strategy } = target.definition
  const finalizers = finalizersFor(
    object.metadata.finalizers ?? [],
    strategy.ownsNothing === true ? 'Background' : (options.propagationPolicy ?? defaultPolicy(object, strategy)),
  )
  const grace = gracePeriodOf(object.metadata, options.gracePeriodSeconds, (asked) =>
    strategy.gracePeriodSeconds?.(object, asked),
  )
  const isKept = finalizers.length > 0 || grace !== 0 || hasSpecFinalizers(object)
  await (isKept ? mark(deletion, { finalizers, grace }) : remove(deletion))
}

async function remove(deletion: Deletion): Promise<void> {
  const { target, entry, object, bytes, dependencies } = deletion
  const { context, signal } = target
  if (context.dryRun) {
    deletion.result = { deleted: true, object, bytes }
    return
  }
  const gone = await context.objects.delete(entry.key, { signal, ifRevision: entry.revision })
  const last = finalState(gone.bytes, target.definition.strategy, context.now)
  deletion.result = { deleted: true, object, bytes: await dependencies.forms.shown(target, last) }
}

async function mark(
  deletion: Deletion,
  keepers: Pick<Parameters<typeof markTerminating>[1], 'finalizers' | 'grace'>,
): Promise<void> {
  const { target, entry, object, bytes, dependencies } = deletion
  const { forms } = dependencies
  const { definition, context, signal } = target
  const { strategy } = definition
  const { deletedByController = false } = strategy
  const isMarked = markTerminating(object, { ...keepers, now: context.now, deletedByController })
  strategy.prepareForUpdate?.(object, decodeObject(bytes), context, '')
  if (!isMarked) {
    deletion.result = { deleted: false, object, bytes }
    return
  }
  const value = encodeObject(isConverted(definition) ? await forms.stored(target, object) : object)
  if (context.dryRun) {
    const shown = await forms.shown(target, stampRevision(value, entry.revision))
    deletion.result = { deleted: false, object, bytes: shown }
    return
  }
  delete object.metadata.resourceVersion
  const written = await context.objects.update(entry.key, value, { signal, ifRevision: entry.revision })
  object.metadata.resourceVersion = String(written.revision)
  deletion.result = { deleted: false, object, bytes: await forms.shown(target, written.bytes) }
}
