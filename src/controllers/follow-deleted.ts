// What the loops that end things have in common: they look at every object that has a deletionTimestamp until it is gone.
import { groupResourceText, type GroupVersionResource } from '../apimachinery/meta/index.ts'
import { clusterInKey, keyFor, parseKey, type KubeClient } from '../client/index.ts'
import { createKeyQueue, runController, type Outcome } from '../reconcile/index.ts'
import type { Loop, LoopContext } from './start-controllers.ts'

/** One object that is being deleted, by name. */
export interface ObjectRef {
  readonly name: string
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string
}

interface Following {
  /** The loop's, in logs and metrics. */
  readonly name: string
  /** One pass over one object; asks for another one where something is left. */
  readonly finish: (client: KubeClient, ref: ObjectRef, signal: AbortSignal) => Promise<Outcome | undefined>
}

/** Runs `finish` for every object of the resource that is being deleted, in all logical clusters, until the context's signal. */
export async function followDeletedOf(
  gvr: GroupVersionResource,
  { name, finish }: Following,
  { graph, clusterOf, log, signal }: LoopContext,
): Loop {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.follow(groupResourceText(gvr), ({ place, exists, deleting }) => {
    if (exists && deleting) queue.add(keyFor(place))
  })
  await runController({
    name,
    queue,
    log,
    signal,
    reconcile: async (key, visit) => {
      const { cluster = '', ...ref } = parseKey(key)
      const client = clusterOf(cluster)
      return client === undefined ? undefined : finish(client, ref, visit)
    },
  })
  stop()
}
