// Finishes the deletion of namespaces: deletes the content, reports what is left, and finalizes the empty namespace.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient, ObjectRef } from '#client/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { ControllerContext } from './controller-context.ts'
import { followDeletedOf } from './follow-deleted.ts'
import { namespaces } from './resources.ts'
import { retryAfterSeconds } from './retry-after.ts'
import { deleteContent, type Remaining } from './delete-content.ts'
import { namespaceConditions, type NamespaceCondition } from './namespace-conditions.ts'

const finalizer = 'kubernetes'

interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] }
  status?: { phase?: string; conditions?: NamespaceCondition[] }
}

/** Visits every namespace with a deletionTimestamp, until the signal aborts. */
export function startNamespaceDeletion(context: ControllerContext): Promise<void> {
  return followDeletedOf(namespaces, { name: 'namespace-deletion', finish: finishNamespace }, context)
}

/** One visit to a namespace that is being deleted. Asks for another visit while something is left. */
async function finishNamespace(
  client: KubeClient,
  { name }: ObjectRef,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const namespace = await client.tryGet<Namespace>(namespaces, { name }, { signal })
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined
  if (!(namespace.spec?.finalizers ?? []).includes(finalizer)) return undefined
  const remaining = await deleteContent(client, name, signal)
  if (remaining === 'unfinished') return { requeueAfterSeconds: 0 }
  if (!isEmpty(remaining)) {
    await writeConditions(client, namespace, remaining, signal)
    return { requeueAfterSeconds: retryAfterSeconds(namespace.metadata.deletionTimestamp, systemClock.now()) }
  }
  await finalize(client, namespace, signal)
  return undefined
}

function isEmpty({ byResource, discoveryFailures, deletionFailures }: Remaining): boolean {
  return byResource.size === 0 && discoveryFailures.length === 0 && deletionFailures.length === 0
}

async function writeConditions(
  client: KubeClient,
  namespace: Namespace,
  remaining: Remaining,
  signal: AbortSignal,
): Promise<void> {
  const before = namespace.status?.conditions ?? []
  const conditions = namespaceConditions(remaining, before, timestamp(systemClock.now()))
  if (JSON.stringify(conditions) === JSON.stringify(before)) return
  await client.update(
    namespaces,
    { ...namespace, status: { ...namespace.status, conditions } },
    { subresource: 'status', signal },
  )
}

async function finalize(client: KubeClient, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const finalizers = (namespace.spec?.finalizers ?? []).filter((name) => name !== finalizer)
  await client
    .update(namespaces, { ...namespace, spec: { ...namespace.spec, finalizers } }, { subresource: 'finalize', signal })
    .catch(tolerate('NotFound'))
}
