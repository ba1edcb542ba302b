// What makes logical clusters behave: loops over all of them at once, nothing for each. They learn from the server beside
// them, which keeps for them only what it has in memory anyway, and write through the logical cluster's own API, as any
// client would.
import type { KubeClient } from '../client/index.ts'
import { childSignal } from '../async/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { startCrdDeletion } from './custom-resources/crd-deletion.ts'
import { startGarbageCollection } from './garbage/garbage-collection.ts'
import type { ObjectGraph } from './garbage/object-graph.ts'
import { startNamespaceDefaults } from './namespaces/namespace-defaults.ts'
import { startNamespaceDeletion } from './namespaces/namespace-deletion.ts'
import type { NewsSource } from './object-news.ts'
import { startRoleAggregation } from './roles/role-aggregation.ts'
import { startTokenSecrets } from './service-accounts/token-secrets.ts'
import { startVolumeProtection } from './volumes/volume-protection.ts'

export interface ControllersOptions {
  /** The API of one logical cluster by name. */
  readonly cluster: (name: string) => KubeClient
  /** What `kube-root-ca.crt` holds in every namespace. PEM. */
  readonly rootCa: string
  /** What there is in all logical clusters, what happens to it, and who owns whom. */
  readonly graph: ObjectGraph & NewsSource
  readonly log: Logger
  readonly signal: AbortSignal
}

/** What one loop works with. */
export interface LoopContext extends ControllersOptions {
  /** The API of the logical cluster with this id; undefined where it is no more. */
  readonly clusterOf: (id: string) => KubeClient | undefined
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
  const { graph, cluster } = options
  const clusterOf = (id: string): KubeClient | undefined => {
    const name = graph.nameOf(id)
    return name === undefined ? undefined : cluster(name)
  }
  const context: LoopContext = { ...options, clusterOf, log, signal }
  const loops = [
    startNamespaceDeletion(context),
    startNamespaceDefaults(context),
    startRoleAggregation(context),
    startCrdDeletion(context),
    startVolumeProtection(context),
    startGarbageCollection(context),
    startTokenSecrets(context),
    // After the loops: what it finds, they hear.
    firstLooks(context),
  ].map((loop) => loop.catch((error: unknown) => log.error('a loop ended with a failure', { error })))
  return {
    [Symbol.asyncDispose]: async () => {
      life.abort(new DOMException('the controllers were stopped', 'AbortError'))
      life[Symbol.dispose]()
      await Promise.all(loops)
    },
  }
}

/** What an earlier process left unfinished goes on, whether or not somebody asks for its logical cluster. */
async function firstLooks({ graph, signal }: LoopContext): Loop {
  try {
    await graph.lookAtAll(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
