// The logical clusters as the syncers of one process see them: one set of informers over all of them, shared by members.
import type { ClusterId, KubeObject } from '../apimachinery/meta/index.ts'
import { createInformer, type Informer, type KubeClient } from '../client/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { indexesOf, type NamespaceIndex } from './namespace-index.ts'
import { gvrs, type ResourceName } from './synced-kinds.ts'

/** Ids of logical clusters by name and back. Whoever starts syncers keeps it true. */
export interface ClusterIds {
  idOf(cluster: string): ClusterId | undefined
  nameOf(id: string): string | undefined
  /** Told of the name of each logical cluster that becomes known. Returns how to end it. */
  onKnown(listener: (cluster: string) => void): () => void
  /** Was known and is deleted; of the latest such, not of all there ever were. */
  isGone(id: string): boolean
  /** Told of the id of each logical cluster that is deleted. Returns how to end it. */
  onGone(listener: (id: string) => void): () => void
}

export interface UpstreamOptions {
  /** Lists and watches over `/clusters/*`: every object says its logical cluster. */
  readonly wildcard: KubeClient
  /** Reads and writes one logical cluster. */
  readonly client: (cluster: string) => KubeClient
  readonly ids: ClusterIds
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface Upstream extends AsyncDisposable {
  readonly ids: ClusterIds
  readonly informers: Readonly<Record<ResourceName, Informer<KubeObject>>>
  /** The objects of each informer by `CLUSTER|NAMESPACE`, once for all members. */
  readonly spaces: Readonly<Record<ResourceName, NamespaceIndex>>
  client(cluster: string): KubeClient
  /** Resolves when every informer has its first list. */
  synced(signal: AbortSignal): Promise<void>
}

/** Starts the shared informers. */
export function createUpstream({ wildcard, client, ids, log, signal }: UpstreamOptions): Upstream {
  const informers = Object.fromEntries(
    Object.entries(gvrs).map(([resource, gvr]) => [
      resource,
      createInformer<KubeObject>({ client: wildcard, gvr, allClusters: true, transform: slim, log, signal }),
    ]),
  ) as Record<ResourceName, Informer<KubeObject>>
  return {
    ids,
    informers,
    spaces: indexesOf(informers),
    client,
    async synced(waiting) {
      await Promise.all(Object.values(informers).map((informer) => informer.synced(waiting)))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(Object.values(informers).map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

/** managedFields are half of an object and say nothing to us. */
export function slim<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields
  return object
}
