// The steps of a plan that write. Each may run twice.
import { tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { contentFinalizer, type LogicalCluster, type LogicalClusterStatus } from '#crds/index.ts'
import type { HeldObject, OrphanedObject, WriteStep } from './plan.ts'

export interface ApplyContext {
  /** Undefined if the LogicalCluster is gone: then there is nothing to do. */
  readonly object: DeepReadonly<LogicalCluster> | undefined
  /** The API of the logical cluster. */
  readonly virtual: KubeClient
  readonly held: readonly HeldObject[]
  readonly orphaned: readonly OrphanedObject[]
  /** Deletes the Secrets of spec.kubeconfigs. */
  readonly removeKubeconfigs: (object: DeepReadonly<LogicalCluster>) => Promise<void>
  readonly setStatus: (status: LogicalClusterStatus) => Promise<void>
  /** Adds the finalizer, or, for an object that is being deleted, runs `onDelete` and then removes it. */
  readonly withFinalizer: (finalizer: string, onDelete: () => Promise<void>) => Promise<void>
}

/** Applies one step. Rejects with the StatusError of a failed write. */
export async function apply(step: WriteStep, context: ApplyContext, signal: AbortSignal): Promise<void> {
  const { object, virtual, held, orphaned, setStatus, withFinalizer } = context
  if (object === undefined) return
  switch (step.do) {
    case 'addFinalizer':
      return withFinalizer(contentFinalizer, async () => undefined)
    case 'setStatus':
      return setStatus(step.status)
    case 'deleteObjects':
      await releaseOrphaned(virtual, orphaned, signal)
      return deleteObjects(virtual, held, signal)
    case 'removeKubeconfigs':
      return context.removeKubeconfigs(object)
    case 'purgeAndRelease':
      return withFinalizer(contentFinalizer, () => purge(virtual, object, signal))
  }
}

/** Drops everything that is stored of the logical cluster with this uid. */
async function purge(
  virtual: KubeClient,
  { metadata }: DeepReadonly<LogicalCluster>,
  signal: AbortSignal,
): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: metadata.uid } }
  await virtual.raw('', { method: 'DELETE', body, signal }).catch(tolerate('NotFound'))
}

const parallelDeletions = 16

/**
 * Removes the finalizers of members that do not exist. Conflict, NotFound: the next reconcile looks at the object
 * again.
 */
async function releaseOrphaned(
  virtual: KubeClient,
  orphaned: readonly OrphanedObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const { gvr, namespace, name, resourceVersion, keptFinalizers } of orphaned) {
    const ref = namespace === undefined ? { name } : { name, namespace }
    const metadata = { resourceVersion, finalizers: keptFinalizers }
    await virtual.patch(gvr, ref, 'merge', { metadata }, { signal }).catch(tolerate('NotFound', 'Conflict'))
  }
}

async function deleteObjects(virtual: KubeClient, held: readonly HeldObject[], signal: AbortSignal): Promise<void> {
  const left = held.filter(({ deleting }) => !deleting)
  const deleteNext = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { gvr, namespace, name, uid, isHeldByOthers } = next
      const ref = namespace === undefined ? { name } : { name, namespace }
      // NotFound, Conflict: gone, or created again. The next reconcile looks at it.
      await virtual
        .delete(gvr, ref, { uid, propagationPolicy: isHeldByOthers ? 'Foreground' : 'Background', signal })
        .catch(tolerate('NotFound', 'Conflict'))
    }
  }
  await Promise.all(Array.from({ length: parallelDeletions }, deleteNext))
}
