// One controller for all logical clusters. However many there are, it has one list and one watch per resource and one
// fair queue. Each reconcile gets a client for the logical cluster of its object. This is the library that other
// programs import.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { shardRange, type ShardField } from '#apimachinery/sharding/index.ts'
import { childSignal } from '#async/index.ts'
import {
  clusterInKey,
  createClient,
  httpTransport,
  keyFor,
  parseKey,
  type DeepReadonly,
  type KubeClient,
  type Kubeconfig,
} from '#client/index.ts'
import { createKeyQueue, runController, type KeyQueue, type ReconcileResult } from '#reconcile/index.ts'
import { createLogger, type Logger } from '#telemetry/index.ts'
import { WatchedResource, type AcrossResource } from './watched-resource.ts'

/** Names one object; `namespace` is empty for cluster-scoped ones. */
export interface ObjectIn<T extends KubeObject = KubeObject> {
  readonly logicalCluster: string
  readonly resource: AcrossResource<T>
  readonly namespace: string
  readonly name: string
}

export interface ReconcileRequest<T extends KubeObject = KubeObject> extends ObjectIn<T> {
  /** The object as last seen by the watch; undefined once it is deleted. Shared: it must not be changed. */
  readonly object: DeepReadonly<T> | undefined
  /** Reads and writes the logical cluster of the object. */
  readonly client: KubeClient
  /** Aborts when the reconcile takes too long or the controller ends. */
  readonly signal: AbortSignal
}

/**
 * Brings one object closer to its desired state. If it throws, it runs again after a backoff. May run twice for one
 * change.
 */
export type ReconcileAcross = (request: ReconcileRequest) => Promise<ReconcileResult | undefined> | Promise<void>

/** One of several consumers that divide the objects among them. All give the same `of` and `by`. */
export interface Shard {
  /** From 0. */
  readonly index: number
  readonly of: number
  /**
   * `logicalCluster` (default): all kinds of one logical cluster have the same consumer. `namespace`: all objects of
   * namespaces with the same name. `uid`: each object for itself, which divides most evenly.
   */
  readonly by?: ShardField
}

export interface AcrossOptions {
  /**
   * For an identity that may list and watch the resources in these logical clusters. The path in `server` is replaced.
   */
  readonly kubeconfig: Kubeconfig
  /**
   * The URL of a provider's view of an APIExport (`status.endpoints[].url` of its APIExportEndpointSlice), or its path on
   * the server of the kubeconfig. Default: the whole installation.
   */
  readonly view?: string
  /** The part of the objects that this consumer works on. Default: all. */
  readonly shard?: Shard
  readonly resources: readonly AcrossResource[]
  /** `*`: all, also those that are created later. Or the names of some; each of them has its own watch. */
  readonly logicalClusters: '*' | readonly string[]
  readonly reconcile: ReconcileAcross
  /** How many objects are reconciled at the same time. Default 8. */
  readonly workers?: number
  /** Ends the controller. */
  readonly signal: AbortSignal
  /** Default: JSON lines to standard error. */
  readonly log?: Logger
}

export interface Across extends AsyncDisposable {
  /** Resolves when all objects that existed at the start are known. They may not have been reconciled yet. */
  synced(): Promise<void>
  /** An object as last seen by the watch. Like `list` and `enqueue`, throws for a resource that is not watched. */
  get<T extends KubeObject>(object: ObjectIn<T>): DeepReadonly<T> | undefined
  /** The objects of a resource in one logical cluster. */
  list<T extends KubeObject>(resource: AcrossResource<T>, logicalCluster: string): Iterable<DeepReadonly<T>>
  /** Queues an object to be reconciled. It need not exist. */
  enqueue(object: ObjectIn): void
}

/**
 * Watches resources across logical clusters and reconciles each of their objects. No object is worked on by two workers
 * at a time, and logical clusters take turns, so one with many changes does not delay the others.
 */
export function watchAcross(options: AcrossOptions): Across {
  return new AcrossController(options)
}

/** Whether a request is about an object of this resource; gives its object the type of the resource. */
export function isOf<T extends KubeObject>(
  request: ReconcileRequest,
  { group, resource }: AcrossResource<T>,
): request is ReconcileRequest<T> {
  return request.resource.resource === resource && request.resource.group === group
}

class AcrossController implements Across {
  readonly #options: AcrossOptions
  readonly #life: ReturnType<typeof childSignal>
  readonly #transport: ReturnType<typeof httpTransport>
  readonly #queue: KeyQueue
  readonly #watched: readonly WatchedResource[]
  readonly #synced: Promise<unknown>
  readonly #done: Promise<void>

  constructor(options: AcrossOptions) {
    const { kubeconfig, resources, logicalClusters, shard, view = '', signal, workers = 8 } = options
    const { log = createLogger() } = options
    const shardSelector = shard && shardRange(shard.by ?? 'logicalCluster', shard)
    requireDistinct(resources)
    this.#options = options
    this.#life = childSignal(signal)
    this.#transport = httpTransport(at(kubeconfig, view))
    this.#queue = createKeyQueue({ fairnessKey: (queued) => clusterInKey(parseQueued(queued).key) })
    const clientOf = (name: string): KubeClient => this.#clientOf(name)
    const shared = { logicalClusters, clientOf, shardSelector, log, signal: this.#life.signal }
    this.#watched = resources.map(
      (resource, at) => new WatchedResource(resource, { ...shared, changed: (key) => this.#queue.add(`${at} ${key}`) }),
    )
    this.#synced = Promise.all(this.#watched.map((one) => one.synced(this.#life.signal)))
    // A reconcile before all objects are known would mistake the missing ones for deleted.
    this.#done = this.#synced.then(
      () =>
        runController({
          name: 'across',
          queue: this.#queue,
          workers,
          reconcile: (queued, aborted) => this.#reconcile(queued, aborted),
          log,
          signal: this.#life.signal,
        }),
      () => undefined,
    )
  }

  async synced(): Promise<void> {
    await this.#synced
  }

  get<T extends KubeObject>(object: ObjectIn<T>): DeepReadonly<T> | undefined {
    return this.#watched[this.#indexOf(object.resource)]?.get(keyOf(object)) as DeepReadonly<T> | undefined
  }

  list<T extends KubeObject>(resource: AcrossResource<T>, logicalCluster: string): Iterable<DeepReadonly<T>> {
    return (this.#watched[this.#indexOf(resource)]?.list(logicalCluster) ?? []) as Iterable<DeepReadonly<T>>
  }

  enqueue(object: ObjectIn): void {
    this.#queue.add(`${this.#indexOf(object.resource)} ${keyOf(object)}`)
  }

  /** Ends the watches, waits for running reconciles, and closes the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DOMException('the controller was closed', 'AbortError'))
    await this.#done
    for (const one of this.#watched) await one[Symbol.asyncDispose]()
    this.#queue[Symbol.dispose]()
    this.#life[Symbol.dispose]()
    await this.#transport[Symbol.asyncDispose]()
  }

  async #reconcile(queued: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { at, key } = parseQueued(queued)
    const watched = this.#watched[at]
    if (watched === undefined) return undefined
    const { cluster: logicalCluster = '', namespace = '', name } = parseKey(key)
    const { resource } = watched
    const [object, client] = [watched.get(key), this.#clientOf(logicalCluster)]
    return (
      (await this.#options.reconcile({ logicalCluster, resource, namespace, name, object, client, signal })) ??
      undefined
    )
  }

  #clientOf(logicalCluster: string): KubeClient {
    return createClient(this.#transport, { basePath: `/clusters/${logicalCluster}` })
  }

  #indexOf(wanted: AcrossResource): number {
    const { resources } = this.#options
    const found = resources.findIndex(({ group, resource }) => resource === wanted.resource && group === wanted.group)
    if (found < 0) throw new Error(`"${wanted.resource}" is not one of the watched resources`)
    return found
  }
}

/** A key of the queue: the index of the resource, and the key of the object. */
function parseQueued(queued: string): { readonly at: number; readonly key: string } {
  const blank = queued.indexOf(' ')
  return { at: Number(queued.slice(0, blank)), key: queued.slice(blank + 1) }
}

function keyOf({ logicalCluster, namespace, name }: ObjectIn): string {
  return keyFor({ cluster: logicalCluster, namespace, name })
}

/** Two watches of one resource would have the same keys. */
function requireDistinct(resources: readonly AcrossResource[]): void {
  const names = resources.map(({ group, resource }) => (group === '' ? resource : `${resource}.${group}`))
  const twice = names.find((name, at) => names.indexOf(name) < at)
  if (twice !== undefined) throw new Error(`"${twice}" is given twice`)
}

/**
 * The kubeconfig with the URL of a view, or of the whole server if `view` is empty: in kubeconfigs of kcp, the URL ends
 * in the path of one logical cluster.
 */
function at(kubeconfig: Kubeconfig, view: string): Kubeconfig {
  return {
    ...kubeconfig,
    async endpoint(options) {
      const found = await kubeconfig.endpoint(options)
      const root = found.server.replace(/\/clusters\/[^/]+\/?$/, '')
      const server = view.startsWith('/') ? new URL(view, root).href : view === '' ? root : view
      return { ...found, server: server.replace(/\/$/, '') }
    },
  }
}
