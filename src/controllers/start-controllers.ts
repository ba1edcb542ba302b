// What makes logical clusters behave: loops over all of them at once, nothing for each. They learn through
// `/clusters/*` and write through the logical cluster's own API, as any client would.
import { createInformer, type Informer, type KubeClient } from '../client/index.ts'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { childSignal } from '../async/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { startCrdDeletion } from './custom-resources/crd-deletion.ts'
import { startGarbageCollection } from './garbage/garbage-collection.ts'
import type { ObjectGraph } from './garbage/object-graph.ts'
import { startNamespaceDefaults } from './namespaces/namespace-defaults.ts'
import { startNamespaceDeletion } from './namespaces/namespace-deletion.ts'
import { skeletonOf } from './namespaces/skeleton.ts'
import { namespaces, permanentNamespaces } from './resources.ts'
import { startRoleAggregation } from './roles/role-aggregation.ts'
import { startTokenSecrets } from './service-accounts/token-secrets.ts'
import { startVolumeProtection } from './volumes/volume-protection.ts'

export interface ControllersOptions {
  /** Reads all logical clusters: base path `/clusters/*`. */
  readonly wildcard: KubeClient
  /** Writes to one logical cluster by name. */
  readonly cluster: (name: string) => KubeClient
  /** What `kube-root-ca.crt` holds in every namespace. PEM. */
  readonly rootCa: string
  /** Who owns whom in all logical clusters. */
  readonly graph: ObjectGraph
  readonly log: Logger
  readonly signal: AbortSignal
}

/** What one loop works with. */
export interface LoopContext extends ControllersOptions {
  /** Namespaces that can be deleted, of all logical clusters; reduced to what skeletonOf keeps. */
  readonly namespaceInformer: Informer<KubeObject>
}

/** A running loop; resolves when its last visit has ended. */
export type Loop = Promise<void>

/**
 * Starts the loops; resolves at once. They end with the signal or by disposal, which waits for visits under way. Nothing
 * is written for what a logical cluster has from birth.
 */
export async function startControllers(options: ControllersOptions): Promise<AsyncDisposable> {
  options.signal.throwIfAborted()
  const log = options.log.with({ component: 'controllers' })
  const life = childSignal(options.signal)
  const { signal } = life
  const namespaceInformer = createInformer<KubeObject>({
    client: options.wildcard,
    gvr: namespaces,
    allClusters: true,
    fieldSelector: permanentNamespaces.map((name) => `metadata.name!=${name}`).join(','),
    transform: skeletonOf,
    log,
    signal,
  })
  const context: LoopContext = { ...options, log, signal, namespaceInformer }
  const loops = [
    startNamespaceDeletion(context),
    startNamespaceDefaults(context),
    startRoleAggregation(context),
    startCrdDeletion(context),
    startVolumeProtection(context),
    startGarbageCollection(context),
    startTokenSecrets(context),
  ].map((loop) => loop.catch((error: unknown) => log.error('a loop ended with a failure', { error })))
  return {
    [Symbol.asyncDispose]: async () => {
      life.abort(new DOMException('the controllers were stopped', 'AbortError'))
      life[Symbol.dispose]()
      await Promise.all([...loops, namespaceInformer[Symbol.asyncDispose]()])
    },
  }
}
