// The steps of every create, update and deletion, in order. Each step changes the object, refuses it with a
// StatusError, or stores it. Kinds differ only in their Strategy.
import { parseApiVersion, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { badRequest, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import type { MetaCheck } from '#virtualapi/kinds/resources/meta-check.ts'
import {
  dropEmptyMetadata,
  dropRepeatedOwners as withoutRepeatedOwners,
  fillNewMeta,
  keepServerMeta,
  metaCauses,
  metaUpdateCauses,
  serverMetaCauses,
} from '#virtualapi/kinds/resources/object-meta.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { isConverted } from '#virtualapi/write/conversion/conversions.ts'
import { holdQuota as heldAmounts } from '#virtualapi/write/quota/index.ts'
import { isFreeUid } from './free-uid.ts'
import { holdNames } from './hold-names.ts'
import { noteStatusManager, setEntries, setManagedFields, statusBefore } from './managed-fields.ts'
import { checkDeletePreconditions, checkPreconditions } from './preconditions.ts'
import { generationChanged, keepSpecOrStatus, resetStatus } from './spec-and-status.ts'
import { removeOrMark, storeChanged, storeNew } from './store-steps.ts'
import type { Create, Deletion, Update, Write } from './write.ts'

/**
 * A step of a write. Returns a promise only if it has to wait for something; most writes wait for nothing but the
 * store.
 */
export type Step<State> = (state: State) => Promise<void> | void

export const createSteps: readonly Step<Create>[] = [
  fillMetadata,
  dropRepeatedOwners,
  clearStatus,
  applyDefaults,
  // Before admission, as upstream: the client does not own fields that plugins and webhooks set.
  manageFields,
  // Before the kind's own preparation: the QoS class of a pod depends on the resources that plugins give it.
  mutateNew,
  prepareNew,
  completeNew,
  validateNew,
  warn,
  validateByAdmission,
  holdQuota,
  holdResourceNames,
  convertForStorage,
  storeNew,
]

export const updateSteps: readonly Step<Update>[] = [
  checkUpdatePreconditions,
  fillNamespace,
  keepServerFields,
  dropRepeatedOwners,
  applyDefaults,
  // As upstream, before resetUnwrittenFields: the client owns even the fields that this endpoint does not write.
  manageFields,
  resetUnwrittenFields,
  mutateChanged,
  prepareChanged,
  completeChanged,
  validateChanged,
  warn,
  validateByAdmission,
  holdQuota,
  holdResourceNames,
  // The last step that may refuse the write, because a change that was made in a member cannot be undone.
  changeElsewhere,
  convertForStorage,
  storeChanged,
]

export const deletionSteps: readonly Step<Deletion>[] = [
  checkDeletionPreconditions,
  validateDeletion,
  deleteElsewhere,
  prepareDeletion,
  removeOrMark,
]

interface State {
  readonly held?: Disposable | undefined
  readonly result?: unknown
}

/**
 * Runs the steps in order, then releases the amounts of quotas that the steps hold. Rejects with the error of the first
 * step that fails.
 */
export async function runSteps<Of extends State>(
  steps: readonly Step<Of>[],
  state: Of,
): Promise<NonNullable<Of['result']>> {
  try {
    for (const step of steps) {
      const waiting = step(state)
      if (waiting !== undefined) await waiting
    }
  } finally {
    state.held?.[Symbol.dispose]()
  }
  if (state.result == null) throw new Error('no step stored the object')
  return state.result
}

/** Sets the metadata that only the server may set. */
function fillMetadata({ target, object, keepUid }: Create): void {
  const { definition, context, namespace } = target
  const { metadata } = object
  if (definition.info.namespaced) metadata.namespace = namespace
  const keepsUid = keepUid && isFreeUid(object, { definition, objects: context.objects })
  fillNewMeta(metadata, { now: context.now, keepUid: keepsUid, hasGeneration: definition.strategy.hasGeneration })
}

function checkUpdatePreconditions({ request, object, old, isPatch }: Update): void {
  const { definition, subresource } = request
  checkPreconditions(definition, object.metadata, old.metadata, { unconditional: subresource === 'scale', isPatch })
}

function fillNamespace({ target, object }: Update): void {
  if (target.definition.info.namespaced && !object.metadata.namespace) object.metadata.namespace = target.namespace
}

/** Restores the metadata that only the server may set, and notes the changes that the client made to it. */
function keepServerFields(update: Update): void {
  const { request, object, old } = update
  if (refusesServerFields(request.definition.strategy, request.subresource))
    update.serverFieldCauses = serverMetaCauses(object.metadata, old.metadata)
  keepServerMeta(object.metadata, old.metadata)
}

/**
 * True if this endpoint refuses changes of server-owned metadata: the main endpoint does, and `status` does for kinds
 * whose metadata it may write.
 */
function refusesServerFields({ statusMeta = 'none' }: ResourceDefinition['strategy'], subresource: string): boolean {
  return subresource === '' || (subresource === 'status' && statusMeta !== 'none')
}

function dropRepeatedOwners({ target, object }: Write): void {
  const repeated = withoutRepeatedOwners(object.metadata)
  if (repeated.length > 0)
    target.context.warnings.push(
      `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${repeated.join(', ')}`,
    )
}

/** Removes the status, which a create may set only for objects of members and for some kinds. */
function clearStatus(create: Create): void {
  if (losesStatus(create)) resetStatus(create.object, undefined)
}

function losesStatus({ target, keepUid }: Create): boolean {
  const { hasStatus, keepsStatusOnCreate = false } = target.definition.strategy
  return hasStatus && !keepUid && !keepsStatusOnCreate
}

function applyDefaults(write: Write): void {
  const { target, object } = write
  write.given = object.metadata.managedFields
  target.definition.strategy.applyDefaults?.(object, target.context)
}

/** Sets managedFields to the owners of fields after this write. */
function manageFields(write: Write): Promise<void> | undefined {
  const { request, object, old, given, dependencies, keepsManagedFields } = write
  const noteEntries = (): void => {
    write.entries = object.metadata.managedFields
  }
  if (!keepsManagedFields && isConverted(request.definition))
    return dependencies.forms
      .withVersions(request, (managed) => setManagedFields(managed, object, old, given))
      .then(noteEntries)
  if (!keepsManagedFields) setManagedFields(request, object, old, given)
  noteEntries()
  return undefined
}

function resetUnwrittenFields({ request, object, old }: Update): void {
  keepSpecOrStatus(request.definition.strategy, object, old, request.subresource)
}

/** Lets plugins, policies and webhooks change the new object, then restores the fields that they must not change. */
function mutateNew(create: Create): Promise<void> | undefined {
  const { request, object, dependencies } = create
  return dependencies.admission.mutate(request, object, undefined)?.then(() => {
    setEntries(object, create.entries)
    requireSameNamespace(object.metadata, request.namespace)
    dropRepeatedOwners(create)
    if (!losesStatus(create)) return
    resetStatus(object, undefined)
    request.definition.strategy.applyDefaults?.(object, request.context)
  })
}

/** Lets plugins, policies and webhooks change the object, then restores the fields that they must not change. */
function mutateChanged(update: Update): Promise<void> | undefined {
  const { request, object, old, dependencies } = update
  return dependencies.admission.mutate(request, object, old)?.then(() => {
    requireSameNamespace(object.metadata, request.namespace)
    keepServerMeta(object.metadata, old.metadata)
    dropRepeatedOwners(update)
    resetUnwrittenFields(update)
  })
}

/** Throws 400 if a webhook has moved the object to another namespace. */
function requireSameNamespace(metadata: ObjectMeta, namespace: string): void {
  if ((metadata.namespace ?? '') !== namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}

/** Runs the kind's own preparation of a new object. */
function prepareNew({ request, object }: Create): void {
  const before = statusBefore(request, object)
  request.definition.strategy.prepareForCreate?.(object, request.context)
  noteStatusManager(request, object, before)
}

function prepareChanged({ request, object, old, entries }: Update): void {
  const { definition, context, subresource } = request
  const before = statusBefore(request, object)
  definition.strategy.prepareForUpdate?.(object, old, context, subresource)
  setEntries(object, entries)
  noteStatusManager(request, object, before)
}

function completeNew({ request, object }: Create): void {
  dropEmptyMetadata(object.metadata)
  if (request.definition.strategy.hasGeneration) object.metadata.generation = 1
}

/** Drops empty metadata, and counts the generation. */
function completeChanged({ request, object, old }: Update): void {
  dropEmptyMetadata(object.metadata)
  const { definition, subresource } = request
  if (subresource === 'status' || subresource === 'binding') return
  if (generationChanged(definition.strategy, object, old))
    object.metadata.generation = (old.metadata.generation ?? 0) + 1
}

function validateNew({ request, object }: Create): void {
  const { definition, context } = request
  refuse(definition, object.metadata, [
    ...metaCauses(object, definition),
    ...(definition.strategy.validateCreate?.(object, context) ?? []),
  ])
}

/**
 * The repeated check of metadata, of the immutable fields only, for kinds without metadataChecks such as custom
 * resources.
 */
const customCheck: MetaCheck = { whole: false, ownFinalizers: false }

function validateChanged({ request, object, old, serverFieldCauses }: Update): void {
  const { definition, context, subresource } = request
  const { info, strategy } = definition
  const checks = strategy.metadataChecks?.[subresource === '' || subresource === 'scale' ? 'update' : 'status']
  refuse(definition, object.metadata, [
    ...metaUpdateCauses(object, old.metadata, serverFieldCauses, { info, strategy, checks: checks ?? [customCheck] }),
    ...(strategy.validateUpdate?.(object, old, context, subresource) ?? []),
  ])
}

/**
 * Throws Invalid. The error names the group of the storage version: an error of an events.k8s.io Event names the core
 * group.
 */
function refuse({ info, storageApiVersion }: ResourceDefinition, metadata: ObjectMeta, causes: StatusCause[]): void {
  if (causes.length === 0) return
  throw invalid({ group: parseApiVersion(storageApiVersion).group, kind: info.kind }, metadata.name ?? '', causes)
}

/** Adds the kind's warnings about a valid object to the response. */
function warn({ request, object, old }: Write): void {
  const { definition, context, subresource } = request
  for (const warning of definition.strategy.warningsOf?.(object, old, context, subresource) ?? [])
    context.warnings.push(warning)
}

function validateByAdmission({ request, object, old, dependencies }: Write): Promise<void> | undefined {
  return dependencies.admission.validate(request, object, old)
}

/** Reserves the amounts that the write adds to quotas until the write has ended. Throws 403 if they do not fit. */
function holdQuota(write: Write): void {
  const { request, object, old, dependencies } = write
  write.held = heldAmounts(request, object, old, dependencies.ledgerFor)
}

/** Reserves the names of resources that a definition or a binding takes until the write has ended. */
function holdResourceNames(write: Write): void {
  const names = write.dependencies.sharedApis ? holdNames(write.request, write.object) : undefined
  if (names === undefined) return
  const held = new DisposableStack()
  if (write.held !== undefined) held.use(write.held)
  held.use(names)
  write.held = held
}

function changeElsewhere({ target, request, object, old }: Update): Promise<void> | undefined {
  return target.forward?.update(object, old, request.subresource)
}

/** Converts both objects, which are compared when the change is stored. */
function convertForStorage({ target, object, old }: Write): void {
  const { strategy } = target.definition
  strategy.prepareForStorage?.(object)
  if (old !== undefined) strategy.prepareForStorage?.(old)
}

function checkDeletionPreconditions({ target, object, options }: Deletion): void {
  checkDeletePreconditions(target.definition, object.metadata, options)
}

function validateDeletion({ request, object, dependencies }: Deletion): Promise<void> | undefined {
  return dependencies.admission.validate(request, undefined, object)
}

async function deleteElsewhere({ target, object, options, onDeletedElsewhere }: Deletion): Promise<void> {
  const { forward, context } = target
  if ((await forward?.delete(object, options)) === true && !context.dryRun) onDeletedElsewhere()
}

/** Runs the kind's own preparation, once: when the object is not being deleted yet. */
function prepareDeletion({ target, object }: Deletion): void {
  if (object.metadata.deletionTimestamp === undefined)
    target.definition.strategy.prepareForDelete?.(object, target.context)
}
