// Ends CustomResourceDefinitions: deletes the objects of the kind, then lets the definition go.
import type { GroupVersionResource, KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { Outcome } from '../../reconcile/index.ts'
import { deleteSome, VisitBudget } from '../delete-some.ts'
import { followDeletedOf, type ObjectRef } from '../follow-deleted.ts'
import { patienceSeconds } from '../patience.ts'
import { customResourceDefinitions } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'

const finalizer = 'customresourcecleanup.apiextensions.k8s.io'

interface CustomResourceDefinition extends KubeObject {
  spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] }
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] }
}

/** Follows every CustomResourceDefinition that has a deletionTimestamp. */
export function startCrdDeletion(context: LoopContext): Loop {
  return followDeletedOf(customResourceDefinitions, { name: 'crd-deletion', finish: finishDefinition }, context)
}

/** One pass over a definition that is being deleted. Asks for another one while objects are left. */
async function finishDefinition(
  client: KubeClient,
  { name }: ObjectRef,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const crd = await client.tryGet<CustomResourceDefinition>(customResourceDefinitions, { name }, { signal })
  const { deletionTimestamp, finalizers = [] } = crd?.metadata ?? {}
  if (crd === undefined || deletionTimestamp === undefined || !finalizers.includes(finalizer)) return undefined
  const left = await deleteInstances(client, crd, signal)
  if (left === 'goes on' || left > 0) {
    await sayInProgress(client, crd, signal)
    return { requeueAfterSeconds: left === 'goes on' ? 0 : patienceSeconds(deletionTimestamp) }
  }
  const rest = finalizers.filter((other) => other !== finalizer)
  await client
    .update(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, finalizers: rest } }, { signal })
    .catch(tolerate('NotFound'))
  await offerNames(client, crd, signal)
  return undefined
}

/** Tells people that the definition waits for its objects. */
async function sayInProgress(client: KubeClient, crd: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const conditions = crd.status?.conditions ?? []
  const reason = 'InstanceDeletionInProgress'
  const message = 'CustomResource deletion is in progress'
  if (conditions.some((one) => one.type === 'Terminating' && one.reason === reason)) return
  const told = conditions.map((one) => (one.type === 'Terminating' ? { ...one, reason, message } : one))
  const status = { ...crd.status, conditions: told }
  await client
    .update(customResourceDefinitions, { ...crd, status }, { subresource: 'status', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The names of a definition that is gone are free: who waits for them is looked at again by being written as it is. */
async function offerNames(client: KubeClient, { spec }: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const { items } = await client.list<CustomResourceDefinition>(customResourceDefinitions, { signal })
  for (const other of items) {
    const waits = other.status?.conditions?.some(({ type, status }) => type === 'NamesAccepted' && status === 'False')
    if (other.spec.group !== spec.group || waits !== true) continue
    await client.update(customResourceDefinitions, other, { signal }).catch(tolerate('NotFound', 'Conflict'))
  }
}

/** Deletes what is not being deleted already; how many objects are still there, or that one visit was not enough for them. */
async function deleteInstances(
  client: KubeClient,
  { spec }: CustomResourceDefinition,
  signal: AbortSignal,
): Promise<number | 'goes on'> {
  const version = spec.versions.find(({ served }) => served)?.name
  if (version === undefined) return 0
  const gvr: GroupVersionResource = { group: spec.group, version, resource: spec.names.plural }
  try {
    const pass = await deleteSome(client, gvr, {}, new VisitBudget(), signal)
    if (pass.done === 'some') return 'goes on'
    return pass.seen === 0 ? 0 : (await client.list(gvr, { metadataOnly: true, signal })).items.length
  } catch (error) {
    // Never established: there can be no objects.
    if (isStatusError(error, 'NotFound')) return 0
    throw error
  }
}
