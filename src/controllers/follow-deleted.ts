// The common part of controllers that finish deletions: they visit each object with a deletionTimestamp until it is gone.
import { groupResourceText, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import { clusterInKey, keyFor, parseKey, type KubeClient, type ObjectRef } from '#client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { ControllerContext } from './controller-context.ts'

interface DeletionController {
  /** Name of the controller in logs and metrics. */
  readonly name: string
  /** Visits one object; the result asks for another visit if something is left to do. */
  readonly finish: (client: KubeClient, ref: ObjectRef, signal: AbortSignal) => Promise<ReconcileResult | undefined>
}

/** Calls `finish` for each object of the resource that is being deleted, in all logical clusters, until the signal aborts. */
export async function followDeletedOf(
  gvr: GroupVersionResource,
  { name, finish }: DeletionController,
  { graph, clientOf, log, signal }: ControllerContext,
): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.follow(groupResourceText(gvr), ({ key, exists, deleting }) => {
    if (exists && deleting) queue.add(keyFor(key))
  })
  await runController({
    name,
    queue,
    log,
    signal,
    reconcile: async (key, visit) => {
      const { cluster = '', ...ref } = parseKey(key)
      const client = clientOf(cluster)
      return client === undefined ? undefined : finish(client, ref, visit)
    },
  })
  stop()
}
