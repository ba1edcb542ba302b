// What the loops that end things have in common: they look at every object that has a deletionTimestamp until it is gone.
import type { GroupVersionResource, KubeObject } from '../apimachinery/meta/index.ts'
import { createInformer, parseKey, type Informer, type KubeClient } from '../client/index.ts'
import { createKeyQueue, runController, type Outcome } from '../reconcile/index.ts'
import { skeletonOf } from './namespaces/skeleton.ts'
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

/** Runs `finish` for every object of the informer that is being deleted, until the context's signal. */
export async function followDeleted(
  informer: Informer<KubeObject>,
  { name, finish }: Following,
  { cluster, log, signal }: LoopContext,
): Loop {
  using queue = createKeyQueue()
  const stop = informer.onChange(({ key, after }) => {
    if (after?.metadata.deletionTimestamp !== undefined) queue.add(key)
  })
  await runController({
    name,
    queue,
    log,
    signal,
    reconcile: (key, visit) => {
      const { cluster: logicalCluster = '', ...ref } = parseKey(key)
      return finish(cluster(logicalCluster), ref, visit)
    },
  })
  stop()
}

/** The same over all logical clusters for a resource that no other loop watches. */
export async function followDeletedOf(gvr: GroupVersionResource, following: Following, context: LoopContext): Loop {
  const { wildcard: client, log, signal } = context
  await using informer = createInformer<KubeObject>({
    client,
    gvr,
    allClusters: true,
    transform: skeletonOf,
    log,
    signal,
  })
  await followDeleted(informer, following, context)
}
