// The entry points of every write: create, update and delete with the semantics of Kubernetes, over the watch cache.
// Update and delete run all their steps again after a lost race, because mutation and validation may then have another
// result. So update takes a function of the current object. write-steps.ts has the steps of one try.
import { KeyedMutex } from '#async/index.ts'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError, notFound, statusError } from '#apimachinery/status/index.ts'
import { isStoreError } from '#store/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { generatedName } from '#virtualapi/kinds/resources/object-meta.ts'
import type { Admission } from '#virtualapi/write/admission/admission.ts'
import type { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { ledgerFor as ledgerOfThread, type LedgerFor } from '#virtualapi/write/quota/index.ts'
import { finalState, type DeleteOptions } from './deletion.ts'
import { fromStoreError } from './store-errors.ts'
import { StoredForms } from './stored-forms.ts'
import { createSteps, deletionSteps, runSteps, updateSteps } from './write-steps.ts'
import type {
  AdmittedPart,
  Create,
  CreateOptions,
  Deleted,
  Deletion,
  RegistryTarget,
  Update,
  UpdateOptions,
  WriteDependencies,
  Written,
} from './write.ts'

const generateNameTries = 8
/**
 * Bounds the retries after lost races. From the second try on, the writers of one object wait in a queue, so more tries
 * are rarely needed.
 */
const lostRaceTries = 50

export interface RegistryDependencies {
  readonly admission: Admission
  readonly conversions: Conversions
  /** Rejects with 403 if the user may not create this object. Called for an update that creates the object. */
  readonly mayCreate?: (target: RegistryTarget, name: string) => Promise<void>
  /** The quota ledgers that all threads share. Default: the ledgers of this thread. */
  readonly ledgerFor?: LedgerFor
  /** False where no shared APIs are served. Default: true. */
  readonly sharedApis?: boolean
}

/** Reads and writes objects of every kind. It keeps no objects, only the queues of writers that lost a race. */
export class Registry {
  /** Converts between the stored form of an object and the forms that clients get. */
  readonly forms: StoredForms
  readonly #mayCreate: RegistryDependencies['mayCreate']
  readonly #dependencies: WriteDependencies
  readonly #mutex = new KeyedMutex()

  constructor({
    admission,
    mayCreate,
    conversions,
    ledgerFor = ledgerOfThread,
    sharedApis = true,
  }: RegistryDependencies) {
    this.forms = new StoredForms(conversions)
    this.#mayCreate = mayCreate
    this.#dependencies = { admission, forms: this.forms, ledgerFor, sharedApis }
  }

  /** The entry of one object. Throws NotFound. */
  get({ definition, context, namespace }: RegistryTarget, name: string): Entry {
    const entry = context.objects.get(definition.storageKey, namespace, name)
    if (entry === undefined) throw notFound(definition.info, name)
    return entry
  }

  /**
   * The bytes of an object in the version of the request. Defaults that the definition got after the object was stored
   * are added only if a webhook converts the objects. Rejects with NotFound.
   */
  async read(target: RegistryTarget, name: string): Promise<Uint8Array> {
    return await this.forms.shown(target, this.get(target, name).bytes)
  }

  async create(target: RegistryTarget, object: KubeObject, options: CreateOptions = {}): Promise<Written> {
    const { definition, context } = target
    const { metadata } = object
    // As upstream, where the storage layer refuses it: the Status has no reason, and a dry run or a text that is not a
    // number passes.
    if (!context.dryRun && /^0*[1-9][0-9]*$/.test(metadata.resourceVersion ?? ''))
      throw statusError(500, '', 'resourceVersion should not be set on objects to be created')
    const generateName = metadata.name ? undefined : metadata.generateName
    for (let attempt = 1; ; attempt++) {
      if (generateName) metadata.name = generatedName(generateName)
      // Defaulting has replaced the metadata if this is not the first attempt.
      object.metadata = metadata
      try {
        return await this.#createOnce(target, object, options)
      } catch (error) {
        const again = generateName && attempt < generateNameTries && isStatusError(error, 'AlreadyExists')
        if (!again) throw fromStoreError(error, definition.info, context.dryRun ? '' : (metadata.name ?? ''))
      }
    }
  }

  async #createOnce(
    target: RegistryTarget,
    object: KubeObject,
    { keepUid = false, keepsManagedFields = false }: CreateOptions,
  ): Promise<Written> {
    const { definition, context, signal, namespace } = target
    const name = object.metadata.name ?? ''
    const request = { operation: 'CREATE', subresource: '', definition, namespace, name, context, signal } as const
    const dependencies = this.#dependencies
    const create: Create = { target, dependencies, request, object, old: undefined, keepUid, keepsManagedFields }
    return await runSteps(createSteps, create)
  }

  /**
   * Runs admission for the object of a subresource, such as a Binding or PodExecOptions; the webhooks may change that
   * object. Resolves with the target for the writes that follow, for which webhooks are not called again.
   */
  async admitPart(target: RegistryTarget, part: AdmittedPart, object: KubeObject): Promise<RegistryTarget> {
    const { definition, context, signal, namespace } = target
    if (part.operation === 'CREATE' && definition.info.namespaced) object.metadata.namespace = namespace
    await this.#dependencies.admission.admitPart({ ...part, definition, context, signal, namespace }, object)
    return { ...target, context: { ...context, admitted: true } }
  }

  async update(target: RegistryTarget, name: string, options: UpdateOptions): Promise<Written> {
    const { definition } = target
    using queue = this.#queueFor(target, name)
    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) await queue.wait()
      const entry = target.context.objects.get(definition.storageKey, target.namespace, name)
      if (entry === undefined) {
        try {
          return await this.#createOnUpdate(target, name, options)
        } catch (error) {
          // Another request has created the object meanwhile, so change that object, as kube-apiserver does. A webhook
          // may refuse with AlreadyExists, too, so check that the object is there.
          const isThere = (): boolean =>
            target.context.objects.get(definition.storageKey, target.namespace, name) !== undefined
          if (!(isStatusError(error, 'AlreadyExists') && isThere() && attempt < lostRaceTries)) throw error
          continue
        }
      }
      let pinned = true
      try {
        const current = decodeObject(await this.forms.readable(target, entry.bytes))
        // The result of `change` shares parts with its argument, and the steps mutate the result.
        const old = copyOfStored(current)
        const next = await options.change(current)
        pinned = !!next.metadata.resourceVersion && next.metadata.resourceVersion !== current.metadata.resourceVersion
        return await this.#updateOnce(target, { entry, old, object: next }, options)
      } catch (error) {
        const lost = isStoreError(error, 'RevisionMismatch') || isStoreError(error, 'KeyMissing')
        if (!(lost && !pinned && attempt < lostRaceTries)) throw fromStoreError(error, definition.info, name)
      }
    }
  }

  /** Serializes writers that lost a race for this object. Disposing of the result leaves the queue. */
  #queueFor(
    { definition, context, namespace, signal }: RegistryTarget,
    name: string,
  ): Disposable & { wait(): Promise<void> } {
    let leave: (() => void) | undefined
    return {
      wait: async () => {
        leave ??= await this.#mutex.take(`${context.cluster.id}/${definition.storageKey}/${namespace}/${name}`, signal)
      },
      [Symbol.dispose]: () => leave?.(),
    }
  }

  async #createOnUpdate(
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
    await this.#mayCreate?.(target, name)
    return this.create(target, object, { keepsManagedFields })
  }

  async #updateOnce(
    target: RegistryTarget,
    { entry, old, object }: Pick<Update, 'entry' | 'old' | 'object'>,
    { subresource, isPatch = false, keepsManagedFields = false }: UpdateOptions,
  ): Promise<Written> {
    const { definition, context, namespace, signal } = target
    const { name } = entry.key
    const request = { operation: 'UPDATE', subresource, definition, namespace, name, context, signal } as const
    return await runSteps<Update>(updateSteps, {
      target,
      dependencies: this.#dependencies,
      request,
      entry,
      old,
      object,
      isPatch,
      keepsManagedFields,
      serverFieldCauses: [],
    })
  }

  /**
   * Deletes an object or, if finalizers or a grace period hold it, marks it as being deleted. Resolves with the
   * remaining object, or with `deleted: true` and its last state.
   */
  async delete(target: RegistryTarget, name: string, options: DeleteOptions): Promise<Deleted> {
    const { definition, context, namespace } = target
    using queue = this.#queueFor(target, name)
    let passedOn: Entry | undefined
    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) await queue.wait()
      // The object was deleted in its member. The member's report of this may have deleted the object here, too, before
      // us.
      if (
        passedOn !== undefined &&
        !isSameObject(passedOn, context.objects.get(definition.storageKey, namespace, name))
      )
        return await this.#lastState(target, passedOn)
      const entry = this.get(target, name)
      try {
        return await this.#deleteOnce(target, entry, { options, onDeletedElsewhere: () => (passedOn = entry) })
      } catch (error) {
        const lost =
          isStoreError(error, 'RevisionMismatch') || (passedOn !== undefined && isStoreError(error, 'KeyMissing'))
        if (!(lost && attempt < lostRaceTries)) throw fromStoreError(error, definition.info, name)
      }
    }
  }

  async #lastState(target: RegistryTarget, { bytes }: Entry): Promise<Deleted> {
    const { definition, context } = target
    const object = decodeObject(await this.forms.shown(target, bytes))
    const last = finalState(bytes, definition.strategy, context.now)
    return { deleted: true, object, bytes: await this.forms.shown(target, last) }
  }

  async #deleteOnce(
    target: RegistryTarget,
    entry: Entry,
    { options, onDeletedElsewhere }: Pick<Deletion, 'options' | 'onDeletedElsewhere'>,
  ): Promise<Deleted> {
    const { definition, context, signal, namespace, ofCollection = false } = target
    const { name } = entry.key
    const bytes = await this.forms.readable(target, entry.bytes)
    const place = { definition, namespace, name, context, signal }
    return await runSteps<Deletion>(deletionSteps, {
      target,
      dependencies: this.#dependencies,
      request: { operation: 'DELETE', subresource: '', ofCollection, ...place },
      entry,
      bytes,
      object: decodeObject(bytes),
      options,
      onDeletedElsewhere,
    })
  }
}

/** True if both entries are of the same object, not of two objects of the same name. */
function isSameObject(one: Entry, other: Entry | undefined): boolean {
  return other !== undefined && decodeMetadata(one.bytes).uid === decodeMetadata(other.bytes).uid
}

/**
 * A deep copy of a stored object, except for the entries of its managedFields: writes replace entries and never change
 * them. Parsing the bytes twice would take longer.
 */
function copyOfStored(object: KubeObject): KubeObject {
  const copy = copiedBesides(object, 'metadata')
  copy.metadata = copiedBesides(object.metadata, 'managedFields')
  return copy
}

function copiedBesides<T extends object>(members: T, shared: keyof T): T {
  const copy = { ...members }
  for (const name of Object.keys(copy) as (keyof T)[]) if (name !== shared) copy[name] = cloneJson(copy[name])
  return copy
}
