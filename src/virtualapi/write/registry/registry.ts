// The write path of every kind: create, update and delete with the semantics of Kubernetes, over the hub. Kinds differ
// only in their Strategy. Update and delete take a function of the current object and call it again after a lost race,
// because mutation and validation may then have another result.
import { KeyedMutex } from '#async/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { sameBesidesTimes } from '#apimachinery/managed-fields/index.ts'
import { parseApiVersion, type GroupVersionKind, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  invalid,
  isStatusError,
  notFound,
  statusError,
  type StatusCause,
} from '#apimachinery/status/index.ts'
import { isStoreError } from '#store/index.ts'
import type { Entry } from '#store/hub/index.ts'
import type { Admission, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import {
  defaultPolicy,
  finalizersFor,
  gracePeriodOf,
  hasSpecFinalizers,
  finalState,
  markTerminating,
  type DeleteOptions,
} from './deletion.ts'
import { keepSpecOrStatus, resetStatus } from './spec-and-status.ts'
import {
  decodeMetadata,
  decodeObject,
  encodeObject,
  hasApiVersion,
  stampRevision,
} from '#virtualapi/kinds/resources/object-bytes.ts'
import {
  dropRepeatedOwners,
  fillNewMeta,
  generatedName,
  keepServerMeta,
  metaCauses,
  metaUpdateCauses,
  serverMetaCauses,
} from '#virtualapi/kinds/resources/object-meta.ts'
import type { MetaCheck } from '#virtualapi/kinds/resources/meta-check.ts'
import { completeMeta } from './complete-meta.ts'
import { copyOfStored } from './copy-of-stored.ts'
import { isConverted, type Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { managedFieldsOf } from './managed-fields.ts'
import { withManagedVersions, type ManagedVersions } from './managed-versions.ts'
import { holdQuota } from '#virtualapi/write/quota/index.ts'
import { checkDeletePreconditions, checkPreconditions } from './preconditions.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { isFreeUid } from './free-uid.ts'
import { fromStoreError } from './store-errors.ts'

const generateNameTries = 8
/**
 * Bounds the retries after lost races. From the second try on, writers of one object queue, so more are rarely needed.
 */
const lostRaceTries = 50

/** Where a request writes, and for whom. */
export interface RegistryTarget {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly signal: AbortSignal
  readonly namespace: string
  /** True: nobody waits for this write, so the store may defer it. */
  readonly deferrable?: boolean
  /** True: the request deletes a collection of which this is one object. */
  readonly ofCollection?: boolean
  /** Present for objects that run elsewhere. */
  readonly forward?: Forward
}

/**
 * Makes a write where the object runs, after admission and validation and before it is stored. Rejects where it is refused; then
 * nothing is stored. Both are called again after a lost race.
 */
export interface Forward {
  update(next: KubeObject, old: KubeObject, subresource: string): Promise<void>
  /** Resolves with whether the object was deleted elsewhere. */
  delete(object: KubeObject, options: DeleteOptions): Promise<boolean>
}

/** What an update does. */
export interface UpdateOptions {
  /** Empty for the object itself; otherwise `status`, `scale` and the like. */
  readonly subresource: string
  /** Returns the wanted object for the current one (undefined: there is none). Must not change its argument. */
  readonly change: (current: KubeObject | undefined) => KubeObject | Promise<KubeObject>
  /** Who owns which fields is said by what `change` leaves. */
  readonly keepsManagedFields?: boolean
  /** True: an object that is not there is created, whatever its kind. */
  readonly createMissing?: boolean
  /** True: a changed uid in the result of `change` is a validation error, not a failed precondition. */
  readonly isPatch?: boolean
}

/** Rejects with 403 where who writes may not create this object. */
type CreateCheck = (target: RegistryTarget, name: string) => Promise<void>

export interface CreateOptions {
  /**
   * The object is a copy of one that lives elsewhere and keeps its status, and its uid unless another object here has that: then
   * it gets a new one.
   */
  readonly keepUid?: boolean
  /** Who owns which fields is said by the object already. */
  readonly keepsManagedFields?: boolean
}

/** A request to a subresource that takes objects of its own kind. */
export type AdmittedPart = Pick<AdmissionRequest, 'operation' | 'subresource' | 'name'> & {
  readonly kind: GroupVersionKind
}

/** The result of a create or update. */
export interface Written {
  readonly object: KubeObject
  /** The bytes for the wire. */
  readonly bytes: Uint8Array
  readonly created: boolean
}

/** Reads and writes objects of every kind. It keeps no objects, only the queues of writers that lost a race. */
export class Registry {
  private readonly admission: Admission
  private readonly mayCreate: CreateCheck | undefined
  private readonly conversions: Conversions
  private readonly mutex = new KeyedMutex()

  constructor({
    admission,
    mayCreate,
    conversions,
  }: {
    admission: Admission
    mayCreate?: CreateCheck
    conversions: Conversions
  }) {
    this.admission = admission
    this.mayCreate = mayCreate
    this.conversions = conversions
  }

  /** The entry of one object. Throws NotFound. */
  get({ definition, context, namespace }: RegistryTarget, name: string): Entry {
    const entry = context.objects.get(definition.storageKey, namespace, name)
    if (entry === undefined) throw notFound(definition.info, name)
    return entry
  }

  /** The bytes of an object in the version of the request, without defaults that the definition got since. Rejects NotFound. */
  async read(target: RegistryTarget, name: string): Promise<Uint8Array> {
    return await this.shown(target, this.get(target, name).bytes)
  }

  async create(target: RegistryTarget, object: KubeObject, options: CreateOptions = {}): Promise<Written> {
    const { definition, context } = target
    const { metadata } = object
    // As upstream, where the storage refuses it: a Status without a reason, not on dry run, and text that is not a
    // number passes.
    if (!context.dryRun && /^0*[1-9][0-9]*$/.test(metadata.resourceVersion ?? ''))
      throw statusError(500, '', 'resourceVersion should not be set on objects to be created')
    const generateName = metadata.name ? undefined : metadata.generateName
    for (let attempt = 1; ; attempt++) {
      if (generateName) metadata.name = generatedName(generateName)
      // Defaulting replaced it if this is not the first attempt.
      object.metadata = metadata
      try {
        return await this.createOnce(target, object, options)
      } catch (error) {
        const again = generateName && attempt < generateNameTries && isStatusError(error, 'AlreadyExists')
        if (!again) throw fromStoreError(error, definition.info, context.dryRun ? '' : (metadata.name ?? ''))
      }
    }
  }

  private async createOnce(
    target: RegistryTarget,
    object: KubeObject,
    { keepUid = false, keepsManagedFields = false }: CreateOptions,
  ): Promise<Written> {
    const { definition, context, signal, namespace } = target
    const { info, strategy } = definition
    if (info.namespaced) object.metadata.namespace = namespace
    const keepsUid = keepUid && isFreeUid(object, { definition, objects: context.objects })
    fillNewMeta(object.metadata, { now: context.now, keepUid: keepsUid, hasGeneration: strategy.hasGeneration })
    dedupeOwners(object.metadata, context)
    const request = {
      operation: 'CREATE',
      definition,
      subresource: '',
      namespace,
      name: object.metadata.name ?? '',
      context,
      signal,
    } as const
    if (strategy.hasStatus && !keepUid && strategy.keepsStatusOnCreate !== true) resetStatus(object, undefined)
    const given = object.metadata.managedFields
    strategy.applyDefaults?.(object, context)
    const managing = keepsManagedFields ? undefined : this.manageFields(request, object, undefined, given)
    if (managing !== undefined) await managing
    // Defaulting plugins come before the kind's own preparation: the QoS class of a pod depends on its resources.
    const { managedFields } = object.metadata
    const mutating = this.admission.mutate(request, object, undefined)
    if (mutating !== undefined) {
      await mutating
      setEntries(object, managedFields)
      requireSameNamespace(object.metadata, namespace)
      dedupeOwners(object.metadata, context)
      if (strategy.hasStatus && !keepUid && strategy.keepsStatusOnCreate !== true) {
        resetStatus(object, undefined)
        strategy.applyDefaults?.(object, context)
      }
    }
    const before = statusBefore(request, object)
    strategy.prepareForCreate?.(object, context)
    noteStatus(request, object, before)
    completeMeta(request, object, undefined)
    refuse(definition, object.metadata, [
      ...metaCauses(object, definition),
      ...(strategy.validateCreate?.(object, context) ?? []),
    ])
    warn(request, object)
    const validating = this.admission.validate(request, object, undefined)
    if (validating !== undefined) await validating
    using _held = holdQuota(request, object, undefined)
    strategy.prepareForStorage?.(object)
    const name = object.metadata.name ?? ''
    const value = encodeObject(isConverted(definition) ? await this.stored(target, object) : object)
    if (context.dryRun) {
      const existing = existingObjectError(target, name)
      if (existing !== undefined) throw existing
      return { object, bytes: await this.shown(target, value), created: true }
    }
    try {
      const entry = await context.objects.create({ resource: definition.storageKey, namespace, name }, value, {
        signal,
      })
      object.metadata.resourceVersion = String(entry.revision)
      const bytes = isConverted(definition) ? await this.shown(target, entry.bytes) : entry.bytes
      return { object, bytes, created: true }
    } catch (error) {
      const existing = isStoreError(error, 'KeyExists') ? existingObjectError(target, name) : undefined
      throw existing ?? fromStoreError(error, info, name)
    }
  }

  /**
   * Asks the webhooks about the object of a subresource, such as a Binding or PodExecOptions; they may change it. Resolves with
   * the target for the writes that follow, which are not shown to webhooks again.
   */
  async admitPart(target: RegistryTarget, part: AdmittedPart, object: KubeObject): Promise<RegistryTarget> {
    const { definition, context, signal, namespace } = target
    if (part.operation === 'CREATE' && definition.info.namespaced) object.metadata.namespace = namespace
    await this.admission.admitPart({ ...part, definition, context, signal, namespace }, object)
    return { ...target, context: { ...context, admitted: true } }
  }

  async update(target: RegistryTarget, name: string, options: UpdateOptions): Promise<Written> {
    const { definition } = target
    using queue = this.queueFor(target, name)
    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) await queue.wait()
      const entry = target.context.objects.get(definition.storageKey, target.namespace, name)
      if (entry === undefined) {
        try {
          return await this.createOnUpdate(target, name, options)
        } catch (error) {
          // Another request created it meanwhile: as kube-apiserver, change that object. A webhook may say AlreadyExists, too.
          const isThere = (): boolean =>
            target.context.objects.get(definition.storageKey, target.namespace, name) !== undefined
          if (!(isStatusError(error, 'AlreadyExists') && isThere() && attempt < lostRaceTries)) throw error
          continue
        }
      }
      let pinned = true
      try {
        const current = decodeObject(await this.readable(target, entry.bytes))
        // What `change` returns shares parts with its argument, and is changed later.
        const old = copyOfStored(current)
        const next = await options.change(current)
        pinned = !!next.metadata.resourceVersion && next.metadata.resourceVersion !== current.metadata.resourceVersion
        return await this.updateOnce(target, entry, old, next, options)
      } catch (error) {
        const lost = isStoreError(error, 'RevisionMismatch') || isStoreError(error, 'KeyMissing')
        if (!(lost && !pinned && attempt < lostRaceTries)) throw fromStoreError(error, definition.info, name)
      }
    }
  }

  /** Serializes writers that lost a race for this object. Disposing of the result leaves the queue. */
  private queueFor(
    { definition, context, namespace, signal }: RegistryTarget,
    name: string,
  ): Disposable & { wait(): Promise<void> } {
    let leave: (() => void) | undefined
    return {
      wait: async () => {
        leave ??= await this.mutex.take(`${context.cluster.id}/${definition.storageKey}/${namespace}/${name}`, signal)
      },
      [Symbol.dispose]: () => leave?.(),
    }
  }

  private async createOnUpdate(
    target: RegistryTarget,
    name: string,
    { subresource, change, createMissing = false, keepsManagedFields = false }: UpdateOptions,
  ): Promise<Written> {
    const { definition } = target
    const mayCreate = createMissing || definition.strategy.allowCreateOnUpdate === true
    if (!mayCreate || subresource !== '') throw notFound(definition.info, name)
    const object = await change(undefined)
    if (object.metadata.uid)
      throw conflict(
        definition.info,
        name,
        `Precondition failed: UID in precondition: ${object.metadata.uid}, UID in object meta: `,
      )
    delete object.metadata.resourceVersion
    await this.mayCreate?.(target, name)
    return this.create(target, object, { keepsManagedFields })
  }

  private async updateOnce(
    target: RegistryTarget,
    entry: Entry,
    old: KubeObject,
    next: KubeObject,
    { subresource, isPatch = false, keepsManagedFields = false }: UpdateOptions,
  ): Promise<Written> {
    const { definition, context, namespace, signal } = target
    const { info, strategy } = definition
    const name = entry.key.name
    const unconditional = subresource === 'scale'
    checkPreconditions(definition, next.metadata, old.metadata, { unconditional, isPatch })
    if (info.namespaced && !next.metadata.namespace) next.metadata.namespace = namespace
    const request = { operation: 'UPDATE', definition, subresource, namespace, name, context, signal } as const
    const kept = keepsServerMeta(strategy, subresource) ? serverMetaCauses(next.metadata, old.metadata) : []
    keepServerMeta(next.metadata, old.metadata)
    dedupeOwners(next.metadata, context)
    const given = next.metadata.managedFields
    strategy.applyDefaults?.(next, context)
    const managing = keepsManagedFields ? undefined : this.manageFields(request, next, old, given)
    if (managing !== undefined) await managing
    const { managedFields } = next.metadata
    // From here on fields are reset that this endpoint does not write; who says something of them was noted all the same.
    keepSpecOrStatus(strategy, next, old, subresource)
    const mutating = this.admission.mutate(request, next, old)
    if (mutating !== undefined) {
      await mutating
      requireSameNamespace(next.metadata, namespace)
      keepServerMeta(next.metadata, old.metadata)
      dedupeOwners(next.metadata, context)
      keepSpecOrStatus(strategy, next, old, subresource)
    }
    const before = statusBefore(request, next)
    strategy.prepareForUpdate?.(next, old, context, subresource)
    setEntries(next, managedFields)
    noteStatus(request, next, before)
    completeMeta(request, next, old)
    const checks = strategy.metadataChecks?.[subresource === '' || subresource === 'scale' ? 'update' : 'status']
    refuse(definition, next.metadata, [
      ...metaUpdateCauses(next, old.metadata, kept, { info, strategy, checks: checks ?? [customCheck] }),
      ...(strategy.validateUpdate?.(next, old, context, subresource) ?? []),
    ])
    warn(request, next, old)
    const validating = this.admission.validate(request, next, old)
    if (validating !== undefined) await validating
    using _held = holdQuota(request, next, old)
    await target.forward?.update(next, old, subresource)
    strategy.prepareForStorage?.(next)
    strategy.prepareForStorage?.(old)
    return await this.writeUpdate(target, entry, old, next)
  }

  private async writeUpdate(target: RegistryTarget, entry: Entry, old: KubeObject, next: KubeObject): Promise<Written> {
    const { definition, context, signal, deferrable = false } = target
    const { resourceVersion: _, ...meta } = old.metadata
    delete next.metadata.resourceVersion
    const { key, revision } = entry
    keepTimes(next, meta, old)
    const stored = isConverted(definition) ? await this.stored(target, next) : next
    const before = isConverted(definition) ? withoutRevision(decodeObject(entry.bytes)) : { ...old, metadata: meta }
    // An update that changes nothing writes nothing and makes no event: GitOps tools and controllers rely on it. As upstream, it
    // does write an object that is stored in another version: so clients migrate what is stored.
    if (
      jsonEqual(before, stored) &&
      (definition.complete === undefined || hasApiVersion(entry.bytes, stored.apiVersion))
    ) {
      next.metadata.resourceVersion = String(revision)
      return { object: next, bytes: await this.shown(target, entry.bytes), created: false }
    }
    const { finalizers = [], deletionTimestamp, deletionGracePeriodSeconds = 0 } = next.metadata
    const gone =
      deletionTimestamp !== undefined &&
      finalizers.length === 0 &&
      deletionGracePeriodSeconds === 0 &&
      !hasSpecFinalizers(next)
    const value = encodeObject(stored)
    if (context.dryRun) {
      next.metadata.resourceVersion = String(revision)
      return { object: next, bytes: await this.shown(target, stampRevision(value, revision)), created: false }
    }
    if (gone) {
      await context.objects.delete(key, { signal, ifRevision: revision })
      // Watchers get the revision of the deletion; the client that removed the last finalizer gets the last stored one.
      next.metadata.resourceVersion = String(revision)
      return { object: next, bytes: stampRevision(encodeObject(next), revision), created: false }
    }
    const renewal = definition.strategy.isRenewal?.(next, old) ?? false
    const written = await context.objects.update(key, value, { signal, ifRevision: revision, deferrable, renewal })
    next.metadata.resourceVersion = String(written.revision)
    return { object: next, bytes: await this.shown(target, written.bytes), created: false }
  }

  /**
   * Deletes an object or, if finalizers or a grace period hold it, marks it. Resolves with the remaining object, or
   * with `deleted: true` and its last state.
   */
  async delete(
    target: RegistryTarget,
    name: string,
    options: DeleteOptions,
  ): Promise<{ deleted: boolean; object: KubeObject; bytes: Uint8Array }> {
    const { definition, context, namespace } = target
    using queue = this.queueFor(target, name)
    let passedOn: Entry | undefined
    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) await queue.wait()
      // What is deleted where it runs may be gone here, too, before we are: its end was reported.
      if (
        passedOn !== undefined &&
        !isSameObject(passedOn, context.objects.get(definition.storageKey, namespace, name))
      )
        return await this.lastState(target, passedOn)
      const entry = this.get(target, name)
      try {
        return await this.deleteOnce(target, entry, options, () => (passedOn = entry))
      } catch (error) {
        const lost =
          isStoreError(error, 'RevisionMismatch') || (passedOn !== undefined && isStoreError(error, 'KeyMissing'))
        if (!(lost && attempt < lostRaceTries)) throw fromStoreError(error, definition.info, name)
      }
    }
  }

  private async lastState(target: RegistryTarget, { bytes }: Entry) {
    const { definition, context } = target
    const object = decodeObject(await this.shown(target, bytes))
    const last = finalState(bytes, definition.strategy, context.now)
    return { deleted: true, object, bytes: await this.shown(target, last) }
  }

  private async deleteOnce(target: RegistryTarget, entry: Entry, options: DeleteOptions, onPassedOn: () => void) {
    const { definition, context, signal, namespace, ofCollection = false } = target
    const { strategy } = definition
    const { key, revision } = entry
    const kept = await this.readable(target, entry.bytes)
    const object = decodeObject(kept)
    const { metadata } = object
    checkDeletePreconditions(definition, metadata, options)
    const request = {
      operation: 'DELETE',
      definition,
      subresource: '',
      namespace,
      name: key.name,
      ofCollection,
      context,
      signal,
    } as const
    const validating = this.admission.validate(request, undefined, object)
    if (validating !== undefined) await validating
    if ((await target.forward?.delete(object, options)) === true && !context.dryRun) onPassedOn()
    if (metadata.deletionTimestamp === undefined) strategy.prepareForDelete?.(object, context)
    const finalizers = finalizersFor(
      metadata.finalizers ?? [],
      strategy.ownsNothing === true ? 'Background' : (options.propagationPolicy ?? defaultPolicy(object, strategy)),
    )
    const grace = gracePeriodOf(metadata, options.gracePeriodSeconds, (asked) =>
      strategy.gracePeriodSeconds?.(object, asked),
    )
    if (finalizers.length === 0 && grace === 0 && !hasSpecFinalizers(object)) {
      if (context.dryRun) return { deleted: true, object, bytes: kept }
      const gone = await context.objects.delete(key, { signal, ifRevision: revision })
      const last = finalState(gone.bytes, strategy, context.now)
      return { deleted: true, object, bytes: await this.shown(target, last) }
    }
    const marked = markTerminating(object, {
      finalizers,
      grace,
      now: context.now,
      deletedByController: strategy.deletedByController ?? false,
    })
    strategy.prepareForUpdate?.(object, decodeObject(kept), context, '')
    if (!marked) return { deleted: false, object, bytes: kept }
    const value = encodeObject(isConverted(definition) ? await this.stored(target, object) : object)
    if (context.dryRun)
      return { deleted: false, object, bytes: await this.shown(target, stampRevision(value, revision)) }
    delete metadata.resourceVersion
    const written = await context.objects.update(key, value, { signal, ifRevision: revision })
    metadata.resourceVersion = String(written.revision)
    return { deleted: false, object, bytes: await this.shown(target, written.bytes) }
  }

  /** Stored bytes as the write path works with them. Rejects where the conversion webhook failed. */
  private async readable(target: RegistryTarget, bytes: Uint8Array): Promise<Uint8Array> {
    const { definition } = target
    return isConverted(definition) ? await this.shown(target, bytes) : (definition.complete?.(bytes) ?? bytes)
  }

  /** Stored bytes in the version of the request. Rejects where the conversion webhook failed. */
  private async shown({ definition, context, signal }: RegistryTarget, bytes: Uint8Array): Promise<Uint8Array> {
    if (!isConverted(definition)) return bytes
    return await this.conversions.shown(definition, bytes, { cluster: context.cluster.id, signal })
  }

  /** The object as it is to be stored. Rejects where the conversion webhook failed. */
  private async stored({ definition, context, signal }: RegistryTarget, object: KubeObject): Promise<KubeObject> {
    if (!isConverted(definition)) return object
    return await this.conversions.stored(definition, object, { cluster: context.cluster.id, signal })
  }

  /** Sets who owns which fields. Undefined where nobody has to be waited for. */
  private manageFields(
    request: AdmissionRequest,
    next: KubeObject,
    old: KubeObject | undefined,
    given: ObjectMeta['managedFields'],
  ): Promise<void> | undefined {
    if (isConverted(request.definition))
      return this.withVersions(request, (managed) => setManagedFields(managed, next, old, given))
    setManagedFields(request, next, old, given)
    return undefined
  }

  /** Runs `compute`, which may need the object in versions that only the conversion webhook can make. */
  async withVersions<T>(
    request: Pick<AdmissionRequest, 'definition' | 'context' | 'signal' | 'subresource'>,
    compute: (request: ManagedVersions) => T,
  ): Promise<T> {
    if (!isConverted(request.definition)) return compute(request)
    return await withManagedVersions(request, this.conversions, compute)
  }
}

/** Whether both entries are of one object, and not of another one of the same name. */
function isSameObject(one: Entry, other: Entry | undefined): boolean {
  return other !== undefined && decodeMetadata(one.bytes).uid === decodeMetadata(other.bytes).uid
}

/** Endpoints that write for others: who owns what is not changed by them. */
const silent = new Set(['binding', 'eviction'])

/** `given`: the entries of the request before it was brought into the form of its kind. */
function setManagedFields(
  request: ManagedVersions,
  next: KubeObject,
  old: KubeObject | undefined,
  given: ObjectMeta['managedFields'],
): void {
  if (silent.has(request.subresource)) return
  // The typed form of an empty list is none, and yet it says something.
  const said = given?.length === 0 ? given : next.metadata.managedFields
  // What both have alike is not compared.
  setEntries(next, old?.metadata.managedFields)
  setEntries(next, managedFieldsOf(request, next, old, said))
}

function setEntries(next: KubeObject, entries: ObjectMeta['managedFields']): void {
  if (entries === undefined) delete next.metadata.managedFields
  else next.metadata.managedFields = entries
}

/** The object before its kind sets its status, where that counts as a write of its own. */
function statusBefore({ definition }: AdmissionRequest, next: KubeObject): KubeObject | undefined {
  return definition.strategy.statusManager === undefined ? undefined : { ...next, metadata: { ...next.metadata } }
}

function noteStatus(request: AdmissionRequest, next: KubeObject, before: KubeObject | undefined): void {
  const { statusManager } = request.definition.strategy
  if (before === undefined || statusManager === undefined || jsonEqual(before['status'], next['status'])) return
  before.metadata = { ...next.metadata }
  const context = { ...request.context, fieldManager: statusManager }
  const entries = managedFieldsOf({ ...request, context, subresource: 'status' }, next, before, undefined)
  if (entries !== undefined) next.metadata.managedFields = entries
}

function withoutRevision({ metadata, ...object }: KubeObject): KubeObject {
  const { resourceVersion: _, ...rest } = metadata
  return { ...object, metadata: rest }
}

/** Takes the old entries where nothing but the times of managers would change. */
function keepTimes(next: KubeObject, meta: ObjectMeta, old: KubeObject): void {
  const { managedFields } = next.metadata
  if (meta.managedFields === undefined || !sameBesidesTimes(meta.managedFields, managedFields)) return
  const candidate = { ...next, metadata: { ...next.metadata, managedFields: meta.managedFields } }
  if (jsonEqual({ ...old, metadata: meta }, candidate)) next.metadata.managedFields = meta.managedFields
}

/** Throws 400 if a webhook has moved the object to another namespace. */
function requireSameNamespace(metadata: ObjectMeta, namespace: string): void {
  if ((metadata.namespace ?? '') !== namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}

function dedupeOwners(metadata: ObjectMeta, { warnings }: RequestContext): void {
  const repeated = dropRepeatedOwners(metadata)
  if (repeated.length > 0)
    warnings.push(
      `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${repeated.join(', ')}`,
    )
}

/** The AlreadyExists error if an object of this name exists, else undefined. */
function existingObjectError({ definition, context, namespace }: RegistryTarget, name: string): Error | undefined {
  const entry = context.objects.get(definition.storageKey, namespace, name)
  if (entry === undefined) return undefined
  const ending = decodeMetadata(entry.bytes).deletionTimestamp !== undefined
  return alreadyExists(definition.info, name, { ending })
}

interface WarnedRequest {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly subresource: string
}

function warn({ definition, context, subresource }: WarnedRequest, object: KubeObject, old?: KubeObject): void {
  for (const warning of definition.strategy.warningsOf?.(object, old, context, subresource) ?? [])
    context.warnings.push(warning)
}

/**
 * Throws Invalid. The error names the group of the storage version: an Event of events.k8s.io is reported as one of v1.
 */
function refuse({ info, storageApiVersion }: ResourceDefinition, metadata: ObjectMeta, causes: StatusCause[]): void {
  if (causes.length === 0) return
  throw invalid({ group: parseApiVersion(storageApiVersion).group, kind: info.kind }, metadata.name ?? '', causes)
}

/** Custom resources and CustomResourceDefinitions check the immutable fields once more. */
const customCheck: MetaCheck = { whole: false, ownFinalizers: false }

/**
 * True if this endpoint reports changes of server-owned fields; on `status`, only kinds that take metadata there do.
 */
function keepsServerMeta({ statusMeta = 'none' }: ResourceDefinition['strategy'], subresource: string): boolean {
  return subresource === '' || (subresource === 'status' && statusMeta !== 'none')
}
