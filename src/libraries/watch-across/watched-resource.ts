// One resource in all logical clusters, or in some of them: its objects, kept current by one watch for all or one for
// each.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import {
  clusterInKey,
  createInformer,
  ObjectIndex,
  withoutManagedFields,
  type DeepReadonly,
  type Informer,
  type KubeClient,
} from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** A resource that is watched; `T` is the type of its objects. */
export interface AcrossResource<T extends KubeObject = KubeObject> extends GroupVersionResource {
  /** Selects on the server: other objects are not sent. */
  readonly labelSelector?: string
  /** Selects on the server by `metadata.name`, `metadata.namespace` or a selectable field of the kind. */
  readonly fieldSelector?: string
  /** Never set: it makes the type of the objects a part of this type. */
  readonly objects?: T
}

export interface WatchedResourceOptions {
  readonly logicalClusters: '*' | readonly string[]
  /** A client of one logical cluster; of all for `*`. */
  readonly clientOf: (logicalCluster: string) => KubeClient
  /** Selects the objects of this consumer on the server; undefined: all. */
  readonly shardSelector: string | undefined
  /** Called with `CLUSTER|NAMESPACE/NAME` of each object, and again when it changes. */
  readonly changed: (key: string) => void
  readonly log: Logger
  readonly signal: AbortSignal
}

interface Watch {
  /** `*`, or the one it watches. */
  readonly logicalCluster: string
  readonly informer: Informer<KubeObject>
  readonly byCluster: ObjectIndex
}

export class WatchedResource implements AsyncDisposable {
  readonly resource: AcrossResource
  readonly #watches: ReadonlyMap<string, Watch>

  constructor(resource: AcrossResource, options: WatchedResourceOptions) {
    this.resource = resource
    const { logicalClusters } = options
    const names = logicalClusters === '*' ? ['*'] : logicalClusters
    this.#watches = new Map(names.map((name) => [name, openWatch(resource, name, options)]))
  }

  /** Resolves when the first lists are complete. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#watches.values()].map(({ informer }) => informer.synced(signal)))
  }

  /** `key`: `CLUSTER|NAMESPACE/NAME`. */
  get(key: string): DeepReadonly<KubeObject> | undefined {
    const watch = this.#watchOf(clusterInKey(key))
    return watch?.informer.store.get(watch.logicalCluster === '*' ? key : key.slice(key.indexOf('|') + 1))
  }

  list(logicalCluster: string): Iterable<DeepReadonly<KubeObject>> {
    return this.#watchOf(logicalCluster)?.byCluster.of(logicalCluster) ?? []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { byCluster, informer } of this.#watches.values()) {
      byCluster[Symbol.dispose]()
      await informer[Symbol.asyncDispose]()
    }
  }

  #watchOf(logicalCluster: string): Watch | undefined {
    return this.#watches.get('*') ?? this.#watches.get(logicalCluster)
  }
}

function openWatch(
  { labelSelector, fieldSelector, group, version, resource }: AcrossResource,
  logicalCluster: string,
  { clientOf, shardSelector, changed, log, signal }: WatchedResourceOptions,
): Watch {
  const allClusters = logicalCluster === '*'
  const informer = createInformer<KubeObject>({
    client: clientOf(logicalCluster),
    gvr: { group, version, resource },
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(shardSelector === undefined ? {} : { shardSelector }),
    allClusters,
    transform: withoutManagedFields,
    log,
    signal,
  })
  const byCluster = new ObjectIndex(informer, (key) => [allClusters ? clusterInKey(key) : logicalCluster])
  informer.onChange(({ key }) => changed(allClusters ? key : `${logicalCluster}|${key}`))
  return { logicalCluster, informer, byCluster }
}
