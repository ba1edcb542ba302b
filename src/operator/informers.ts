// One informer per resource for all controllers of the operator: each object is listed, watched and kept once.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '../apimachinery/meta/index.ts'
import { createInformer, type Informer, type KubeClient } from '../client/index.ts'
import type { Logger } from '../telemetry/index.ts'

export interface SharedInformers {
  /** The informer of this resource, started with the first call. It lives as long as the operator. */
  of<T extends KubeObject>(gvr: GroupVersionResource, options?: { readonly namespace?: string }): Informer<T>
}

/** Informers over one client until the signal aborts. */
export function sharedInformers(
  client: KubeClient,
  { log, signal }: { log: Logger; signal: AbortSignal },
): SharedInformers {
  const informers = new Map<string, Informer<KubeObject>>()
  return {
    of<T extends KubeObject>(
      gvr: GroupVersionResource,
      { namespace }: { readonly namespace?: string } = {},
    ): Informer<T> {
      const key = `${groupResourceText(gvr)}/${gvr.version}/${namespace ?? ''}`
      let informer = informers.get(key)
      if (informer === undefined) {
        informer = createInformer({ client, gvr, log, signal, ...(namespace === undefined ? {} : { namespace }) })
        informers.set(key, informer)
      }
      // One resource has one type; who asks knows which.
      return informer as unknown as Informer<T>
    },
  }
}
