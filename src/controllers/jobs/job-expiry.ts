// Deletes Jobs whose spec.ttlSecondsAfterFinished has passed since they ended, as kube-controller-manager does. Their copies
// in members do not have the field, so that no member deletes a Job that is still wanted upstream.
import { type GroupVersionResource, type KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import { systemClock } from '../../async/index.ts'
import { clusterInKey, keyFor, parseKey } from '../../client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '../../reconcile/index.ts'
import type { ControllerContext } from '../context/controller-context.ts'
import { expiryMs } from './expiry-time.ts'

const jobs: GroupVersionResource = { group: 'batch', version: 'v1', resource: 'jobs' }
/** A Job that lives longer is looked at again then: timers of Node end at 24 days. */
const maxWaitSeconds = 86_400

/** Deletes expired Jobs of all logical clusters, until the signal aborts. */
export async function startJobExpiry({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.follow('jobs.batch', ({ key, exists, deleting, contains }) => {
    if (exists && !deleting && contains('"ttlSecondsAfterFinished":') && contains('"conditions":['))
      queue.add(keyFor(key))
  })
  await runController({
    name: 'job-expiry',
    queue,
    log,
    signal,
    reconcile: async (key, visit): Promise<ReconcileResult | undefined> => {
      const { cluster = '', namespace = '', name } = parseKey(key)
      const client = clientOf(cluster)
      // Not found: the Job, or its logical cluster, was deleted.
      const job = await client?.tryGet<KubeObject>(jobs, { namespace, name }, { signal: visit })
      if (client === undefined || job === undefined) return undefined
      const at = job.metadata.deletionTimestamp === undefined ? expiryMs(job) : undefined
      if (at === undefined) return undefined
      const leftSeconds = (at - systemClock.now()) / 1000
      if (leftSeconds > 0) return { requeueAfterSeconds: Math.min(leftSeconds, maxWaitSeconds) }
      const { uid, resourceVersion } = job.metadata
      const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
      await client
        .delete(jobs, { namespace, name }, { ...preconditions, propagationPolicy: 'Foreground', signal: visit })
        .catch(tolerate('NotFound'))
      return undefined
    },
  })
  stop()
}
