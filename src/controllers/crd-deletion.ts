// Finishes the deletion of CustomResourceDefinitions: deletes the objects of the kind, then removes the finalizer.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock } from '#async/index.ts'
import type { KubeClient, ObjectRef } from '#client/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { type ControllerContext, followDeletedOf, retryAfterSeconds } from './framework.ts'
import { DeletionBudget, deleteBatch } from './delete-batch.ts'
import { customResourceDefinitions } from './resources.ts'

/** Upstream, kube-apiserver itself does the work of this controller. */
const fieldManager = 'kube-apiserver'
const finalizer = 'customresourcecleanup.apiextensions.k8s.io'

interface CustomResourceDefinition extends KubeObject {
  spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean; storage: boolean }[] }
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] }
}

/** Reconciles every CustomResourceDefinition with a deletionTimestamp, until the signal aborts. */
export function startCrdDeletion(context: ControllerContext): Promise<void> {
  return followDeletedOf(customResourceDefinitions, { name: 'crd-deletion', finish: finishDefinition }, context)
}

/** Reconciles a definition that is being deleted. Asks for another reconcile while objects are left. */
async function finishDefinition(
  client: KubeClient,
  { name }: ObjectRef,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const crd = await client.tryGet<CustomResourceDefinition>(customResourceDefinitions, { name }, { signal })
  const { deletionTimestamp, finalizers = [] } = crd?.metadata ?? {}
  if (crd === undefined || deletionTimestamp === undefined || !finalizers.includes(finalizer)) return undefined
  const left = await deleteInstances(client, crd, signal)
  if (left === 'unfinished' || left > 0) {
    await reportInProgress(client, crd, signal)
    return { requeueAfterSeconds: left === 'unfinished' ? 0 : retryAfterSeconds(deletionTimestamp, systemClock.now()) }
  }
  const rest = finalizers.filter((other) => other !== finalizer)
  await client
    .update(
      customResourceDefinitions,
      { ...crd, metadata: { ...crd.metadata, finalizers: rest } },
      { fieldManager, signal },
    )
    .catch(tolerate('NotFound'))
  await releaseNames(client, crd, signal)
  return undefined
}

/** Sets the condition Terminating: the definition waits for its objects. */
async function reportInProgress(client: KubeClient, crd: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const conditions = crd.status?.conditions ?? []
  const reason = 'InstanceDeletionInProgress'
  const message = 'CustomResource deletion is in progress'
  if (conditions.some((one) => one.type === 'Terminating' && one.reason === reason)) return
  const updated = conditions.map((one) => (one.type === 'Terminating' ? { ...one, reason, message } : one))
  const status = { ...crd.status, conditions: updated }
  await client
    .update(customResourceDefinitions, { ...crd, status }, { subresource: 'status', fieldManager, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/**
 * The names of the deleted definition are free now. An unchanged update makes the server check the names of each
 * definition of the group that waited for them.
 */
async function releaseNames(
  client: KubeClient,
  { spec }: CustomResourceDefinition,
  signal: AbortSignal,
): Promise<void> {
  const { items } = await client.list<CustomResourceDefinition>(customResourceDefinitions, { signal })
  for (const other of items) {
    const waits = other.status?.conditions?.some(({ type, status }) => type === 'NamesAccepted' && status === 'False')
    if (other.spec.group !== spec.group || waits !== true) continue
    await client
      .update(customResourceDefinitions, other, { fieldManager, signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }
}

/**
 * Deletes the objects of the kind. Resolves with the number of objects left, or `unfinished` if one reconcile was not
 * enough.
 */
async function deleteInstances(
  client: KubeClient,
  { spec }: CustomResourceDefinition,
  signal: AbortSignal,
): Promise<number | 'unfinished'> {
  const served = spec.versions.filter((version) => version.served)
  // Reads the stored version, which needs no conversion webhook: the webhook may have been deleted before its CRD.
  const version = (served.find(({ storage }) => storage) ?? served[0])?.name
  if (version === undefined) return 0
  const gvr: GroupVersionResource = { group: spec.group, version, resource: spec.names.plural }
  try {
    const batch = await deleteBatch(client, { gvr }, new DeletionBudget(), signal)
    if (!batch.finished) return 'unfinished'
    return batch.seen === 0 ? 0 : (await client.list(gvr, { metadataOnly: true, signal })).items.length
  } catch (error) {
    // The definition was never established: it has no objects.
    if (isStatusError(error, 'NotFound')) return 0
    throw error
  }
}
