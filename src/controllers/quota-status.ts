// Keeps the status of ResourceQuotas: the usage, as the API server beside the controllers counts it for admission.
import { tolerate } from '#apimachinery/status/index.ts'
import { clusterInKey, keyFor, parseKey } from '#client/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { ControllerContext } from './framework.ts'
import { resourceQuotas } from './resources.ts'

/** Collects the changes of a namespace before its quotas are written: a burst of creates costs a few writes. */
const collectMs = 50

/** Writes the status of the quotas of a namespace after each change in it, until the signal aborts. */
export async function startQuotaStatus(context: ControllerContext): Promise<void> {
  const { graph, log, signal } = context
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.followQuotas(({ cluster, namespace }) => {
    queue.addAfter(keyFor({ cluster, name: namespace }), collectMs)
  })
  await runController({
    name: 'quota-status',
    queue,
    log,
    signal,
    reconcile: (key, reconcile) => writeStatus(key, context, reconcile),
  })
  stop()
}

async function writeStatus(key: string, { graph, clientOf }: ControllerContext, signal: AbortSignal): Promise<void> {
  const { cluster = '', name: namespace } = parseKey(key)
  const client = clientOf(cluster)
  if (client === undefined) return
  for (const quota of await graph.outdatedQuotas(cluster, namespace, signal)) {
    // A quota that was changed or deleted meanwhile is reconciled again.
    await client
      .update(resourceQuotas, quota, { subresource: 'status', signal })
      .catch(tolerate('Conflict', 'NotFound'))
  }
}
