// The loop that most controllers share: changes of objects put places into a queue, and each place is visited until that succeeds.
import { clusterInKey, keyFor, parseKey, type KubeClient } from '#client/index.ts'
import type { ObjectChange } from '#reconcile/object-graph/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { ControllerContext } from './controller-context.ts'

/** What is visited: an object, or whatever else these names mean to the controller. */
export interface Place {
  readonly cluster: string
  readonly namespace?: string
  readonly name: string
}
/** Puts a place into the queue, at once or after a delay: who asks several times meanwhile causes one visit. */
export type Enqueue = (place: Place, delayMs?: number) => void

export interface ChangedOptions {
  /** In logs and metrics. */
  readonly name: string
  /** By resource (`jobs.batch`): what a change of an object causes. */
  readonly follow: Readonly<Record<string, (change: ObjectChange, enqueue: Enqueue) => void>>
  /** Visits a place whose logical cluster exists. It is visited again, later, if this rejects. */
  readonly visit: (
    place: Place,
    tools: { readonly client: KubeClient; readonly enqueue: Enqueue; readonly signal: AbortSignal },
  ) => Promise<ReconcileResult | undefined> | Promise<void>
}

/** Visits what changes in all logical clusters, until the signal of the context aborts. */
export async function visitChanged(
  { graph, clientOf, log, signal }: ControllerContext,
  { name, follow, visit }: ChangedOptions,
): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const enqueue: Enqueue = (place, delayMs) => {
    if (delayMs === undefined) queue.add(keyFor(place))
    else queue.addAfter(keyFor(place), delayMs)
  }
  const stops = Object.entries(follow).map(([resource, listener]) =>
    graph.follow(resource, (change) => listener(change, enqueue)),
  )
  await runController({
    name,
    queue,
    log,
    signal,
    reconcile: async (key, visitSignal): Promise<ReconcileResult | undefined> => {
      const { cluster = '', ...place } = parseKey(key)
      const client = clientOf(cluster)
      return client === undefined
        ? undefined
        : ((await visit({ cluster, ...place }, { client, enqueue, signal: visitSignal })) ?? undefined)
    },
  })
  for (const stop of stops) stop()
}
