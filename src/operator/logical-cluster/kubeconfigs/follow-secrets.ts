// A watch on the Secrets of spec.kubeconfigs, which reports changes and deletions by others at once.
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import { createInformer, type DeepReadonly, type Informer, type KubeClient } from '#client/index.ts'
import type { LogicalCluster } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { hasKubeconfigs } from './keep-kubeconfigs.ts'
import { ourLabel, ownerAnnotation, type Secret } from './plan-secret.ts'

export interface FollowOptions {
  /** The API in which LogicalClusters and the Secrets are. */
  readonly clusters: KubeClient
  readonly objects: Informer<LogicalCluster>
  /** Called with the name of a LogicalCluster whose Secret was deleted or changed, also by our own renewals. */
  readonly changed: (name: string) => void
  readonly log: Logger
  readonly signal: AbortSignal
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
/** The interval, in milliseconds, at which the watch asks again whether it has the right to watch. */
const askAgainMs = 10 * 60_000

/**
 * Watches the metadata of our Secrets in all namespaces until the signal aborts. Begins when a LogicalCluster wants
 * Secrets and the installation grants the right to watch, which a role in single namespaces does not. Never rejects.
 */
export async function followSecrets({ clusters, objects, changed, log, signal }: FollowOptions): Promise<void> {
  try {
    await untilWanted(objects, signal)
    while (!(await mayWatch(clusters, log, signal))) await sleep(askAgainMs, signal)
  } catch (error) {
    if (!signal.aborted) log.error('Secrets with kubeconfigs are not watched', { error })
    return
  }
  const scope = { gvr: secrets, labelSelector: ourLabel, metadataOnly: true }
  const informer = createInformer<Secret>({ client: clusters, ...scope, log, signal })
  informer.onChange(({ before, after }) => {
    // A new Secret is either ours, just written, or known from before a restart.
    if (before === undefined || before.metadata.resourceVersion === after?.metadata.resourceVersion) return
    const uid = before.metadata.annotations?.[ownerAnnotation]
    const owner = objects.store.list().find(({ metadata }) => metadata.uid === uid)
    if (owner !== undefined) changed(owner.metadata.name)
  })
}

/** Resolves when a LogicalCluster has Secrets to keep. Rejects with signal.reason. */
async function untilWanted(objects: Informer<LogicalCluster>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  const unsubscribe = objects.onChange(({ after }: { after?: DeepReadonly<LogicalCluster> | undefined }) => {
    if (after !== undefined && hasKubeconfigs(after)) resolve(undefined)
  })
  try {
    signal.throwIfAborted()
    await promise
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', abort)
  }
}

async function mayWatch(clusters: KubeClient, log: Logger, signal: AbortSignal): Promise<boolean> {
  try {
    await clusters.list(secrets, { limit: 1, labelSelector: ourLabel, metadataOnly: true, signal })
    return true
  } catch (error) {
    if (!isStatusError(error)) throw error
    const keys = { role: 'kcp-kubeconfig-secrets-watch', error }
    log.info('Secrets with kubeconfigs are checked only every ten minutes, because kcp may not watch them', keys)
    return false
  }
}
