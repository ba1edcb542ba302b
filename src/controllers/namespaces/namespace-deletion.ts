// Ends namespaces: deletes what is in one, says what is in the way, and lets it go once it is empty.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import { systemClock, timestamp } from '../../async/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { Outcome } from '../../reconcile/index.ts'
import { followDeletedOf, type ObjectRef } from '../follow-deleted.ts'
import { patienceSeconds } from '../patience.ts'
import { namespaces } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import { deleteContent, type Remaining } from './delete-content.ts'
import { namespaceConditions, type NamespaceCondition } from './namespace-conditions.ts'

const finalizer = 'kubernetes'

interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] }
  status?: { phase?: string; conditions?: NamespaceCondition[] }
}

/** Follows every namespace that has a deletionTimestamp. */
export function startNamespaceDeletion(context: LoopContext): Loop {
  return followDeletedOf(namespaces, { name: 'namespace-deletion', finish: finishNamespace }, context)
}

/** One pass over a namespace that is being deleted. Asks for another one while something is left. */
async function finishNamespace(
  client: KubeClient,
  { name }: ObjectRef,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const namespace = await client.tryGet<Namespace>(namespaces, { name }, { signal })
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined
  if (!(namespace.spec?.finalizers ?? []).includes(finalizer)) return undefined
  const remaining = await deleteContent(client, name, signal)
  if (remaining === 'goes on') return { requeueAfterSeconds: 0 }
  if (!isEmpty(remaining)) {
    await tell(client, namespace, remaining, signal)
    return { requeueAfterSeconds: patienceSeconds(namespace.metadata.deletionTimestamp) }
  }
  await release(client, namespace, signal)
  return undefined
}

function isEmpty({ byResource, discoveryFailures, deletionFailures }: Remaining): boolean {
  return byResource.size === 0 && discoveryFailures.length === 0 && deletionFailures.length === 0
}

async function tell(
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

async function release(client: KubeClient, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const finalizers = (namespace.spec?.finalizers ?? []).filter((name) => name !== finalizer)
  await client
    .update(namespaces, { ...namespace, spec: { ...namespace.spec, finalizers } }, { subresource: 'finalize', signal })
    .catch(tolerate('NotFound'))
}
