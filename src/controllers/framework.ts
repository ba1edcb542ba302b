// Context of all controllers, and the loop of most: a change of an object queues a place, which is reconciled until a
// reconcile succeeds.
import { groupResourceText, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import { clusterInKey, keyFor, type KubeClient, type ObjectRef, parseKey } from '#client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { ObjectChange, ObjectFeed, ObjectGraph, SharedApis } from '#reconcile/object-graph/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** Signs a PKCS #10 request (PEM) for use in one logical cluster alone, and resolves with the certificate, PEM. */
export type SignClientRequest = (request: {
  readonly request: string
  readonly clusterId: string
  readonly seconds: number
}) => Promise<string>

/** The dependencies of all controllers, from the process that starts them. */
export interface ControllersOptions {
  /** `apiserver`: only those that run inside kube-apiserver. Default: also those of kube-controller-manager. */
  readonly scope?: 'apiserver'
  /** The API of one logical cluster, by name. */
  readonly cluster: (name: string) => KubeClient
  /** The content of `kube-root-ca.crt` in every namespace. PEM. */
  readonly rootCa: string
  readonly signClientRequest: SignClientRequest
  /** APIExports and their consumers; absent where none are served. */
  readonly sharing?: SharedApis
  /** The URL at which the provider of an export reaches its consumers. */
  readonly viewUrl?: (cluster: string, exportName: string) => string | undefined
  /** The objects of all logical clusters and their changes. */
  readonly graph: ObjectGraph & ObjectFeed
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface ControllerContext extends ControllersOptions {
  /** The API of the logical cluster with this id; undefined after its deletion. */
  readonly clientOf: (clusterId: string) => KubeClient | undefined
}

/** The object to reconcile, or something else that these names mean to the controller. */
interface Place {
  readonly cluster: string
  readonly namespace?: string
  readonly name: string
}
/** Puts a place into the queue, at once or after a delay. A place that is in the queue already is reconciled once. */
type Enqueue = (place: Place, delayMs?: number) => void

export interface ChangedOptions {
  /** Name of the controller in logs and metrics. */
  readonly name: string
  /** By resource (`jobs.batch`), the function that is called for each change of an object and queues places. */
  readonly follow: Readonly<Record<string, (change: ObjectChange, enqueue: Enqueue) => void>>
  /** Listens to other sources of changes. Returns the function that ends it. */
  readonly listen?: (enqueue: Enqueue) => () => void
  /** Reconciles a place whose logical cluster exists. If it rejects, the place is reconciled again later. */
  readonly reconcile: (
    place: Place,
    tools: { readonly client: KubeClient; readonly enqueue: Enqueue; readonly signal: AbortSignal },
  ) => Promise<ReconcileResult | undefined> | Promise<void>
}

/** Runs a controller over the changes in all logical clusters, until the signal of the context aborts. */
export async function reconcileChanged(
  { graph, clientOf, log, signal }: ControllerContext,
  { name, follow, listen, reconcile }: ChangedOptions,
): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const enqueue: Enqueue = (place, delayMs) => {
    if (delayMs === undefined) queue.add(keyFor(place))
    else queue.addAfter(keyFor(place), delayMs)
  }
  const stops = Object.entries(follow).map(([resource, listener]) =>
    graph.follow(resource, (change) => listener(change, enqueue)),
  )
  if (listen !== undefined) stops.push(listen(enqueue))
  await runController({
    name,
    queue,
    log,
    signal,
    reconcile: async (key, reconcileSignal): Promise<ReconcileResult | undefined> => {
      const { cluster = '', ...place } = parseKey(key)
      const client = clientOf(cluster)
      return client === undefined
        ? undefined
        : ((await reconcile({ cluster, ...place }, { client, enqueue, signal: reconcileSignal })) ?? undefined)
    },
  })
  for (const stop of stops) stop()
}

interface DeletionController {
  /** Name of the controller in logs and metrics. */
  readonly name: string
  /** Reconciles one object; the result asks for another reconcile if something is left to do. */
  readonly finish: (client: KubeClient, ref: ObjectRef, signal: AbortSignal) => Promise<ReconcileResult | undefined>
}

/**
 * Calls `finish` for each object of the resource that is being deleted, in all logical clusters, until the signal
 * aborts.
 */
export async function followDeletedOf(
  gvr: GroupVersionResource,
  { name, finish }: DeletionController,
  context: ControllerContext,
): Promise<void> {
  await reconcileChanged(context, {
    name,
    follow: {
      [groupResourceText(gvr)]: ({ key, exists, deleting }, enqueue) => {
        if (exists && deleting) enqueue(key)
      },
    },
    reconcile: ({ cluster: _, ...ref }, { client, signal }) => finish(client, ref, signal),
  })
}

/**
 * Seconds until a controller checks again an object that is being deleted and is still held by a finalizer or by
 * content: a quarter of the time since the deletion, at least 0.2 and at most 30. Most objects are released within
 * seconds; an object that was held for long is checked rarely.
 */
export function retryAfterSeconds(deletionTimestamp: string, nowMs: number): number {
  const seconds = (nowMs - Date.parse(deletionTimestamp)) / 1000
  return Math.min(30, Math.max(0.2, seconds / 4))
}
