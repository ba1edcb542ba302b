// One informer per resource and process: each object is listed, watched and kept once for all its readers. One informer
// can have several indexes.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { KubeClient } from '#client/verbs/client.ts'
import { createInformer, type Informer } from './informer.ts'
import { namespaceKeyOf } from './key.ts'
import { ObjectIndex } from './object-index.ts'

export interface SharedInformers {
  /** The informer of this resource, started by the first call. It lives until the signal of sharedInformers aborts. */
  of<T extends KubeObject>(gvr: GroupVersionResource, options?: { readonly namespace?: string }): Informer<T>
  /** The objects of this resource by namespaceKeyOf their key; one index for all callers. */
  byNamespace(gvr: GroupVersionResource): ObjectIndex
}

export interface SharedInformersOptions {
  /**
   * The base path of the client is `/clusters/*`: keys begin with the logical cluster, and only written objects are
   * listed. Default false.
   */
  readonly allClusters?: boolean
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Informers over one client until the signal aborts. Objects are kept without managedFields, half of their size. */
export function sharedInformers(
  client: KubeClient,
  { allClusters = false, log, signal }: SharedInformersOptions,
): SharedInformers {
  const informers = new Map<string, Informer<KubeObject>>()
  const indexes = new Map<string, ObjectIndex>()
  const keyOf = (gvr: GroupVersionResource, namespace = ''): string =>
    `${groupResourceText(gvr)}/${gvr.version}/${namespace}`
  const of = <T extends KubeObject>(
    gvr: GroupVersionResource,
    { namespace }: { readonly namespace?: string } = {},
  ): Informer<T> => {
    const key = keyOf(gvr, namespace)
    let informer = informers.get(key)
    if (informer === undefined) {
      const scope = namespace === undefined ? {} : { namespace }
      const kept = { storedOnly: allClusters, transform: withoutManagedFields }
      informer = createInformer({ client, gvr, ...scope, allClusters, ...kept, log, signal })
      informers.set(key, informer)
    }
    // A resource has one type, which the caller names.
    return informer as unknown as Informer<T>
  }
  return {
    of,
    byNamespace(gvr) {
      const key = keyOf(gvr)
      let index = indexes.get(key)
      if (index === undefined) {
        index = new ObjectIndex(of(gvr), (objectKey) => [namespaceKeyOf(objectKey)])
        indexes.set(key, index)
      }
      return index
    },
  }
}

/** A transform that drops managedFields, which no reader of a cache needs. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields
  return object
}
