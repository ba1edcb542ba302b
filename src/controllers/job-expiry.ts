// Deletes Jobs whose spec.ttlSecondsAfterFinished has passed since they ended, as kube-controller-manager does. Their
// copies in members do not have the field, so that no member deletes a Job that is still wanted upstream.
import { type GroupVersionResource, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock } from '#async/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'

const jobs: GroupVersionResource = { group: 'batch', version: 'v1', resource: 'jobs' }
/** A Job that lives longer is checked again after this time, because timers of Node are limited to 24 days. */
const maxWaitSeconds = 86_400

/** Deletes expired Jobs of all logical clusters, until the signal aborts. */
export async function startJobExpiry(context: ControllerContext): Promise<void> {
  await reconcileChanged(context, {
    name: 'job-expiry',
    follow: {
      'jobs.batch': ({ key: { cluster, namespace, name }, exists, deleting, contains }, enqueue) => {
        if (exists && !deleting && contains('"ttlSecondsAfterFinished":') && contains('"conditions":['))
          enqueue({ cluster, namespace, name })
      },
    },
    reconcile: async ({ namespace = '', name }, { client, signal }): Promise<ReconcileResult | undefined> => {
      // Not found: the Job, or its logical cluster, was deleted.
      const job = await client.tryGet<KubeObject>(jobs, { namespace, name }, { signal })
      if (job === undefined) return undefined
      const at = job.metadata.deletionTimestamp === undefined ? expiryMs(job) : undefined
      if (at === undefined) return undefined
      const leftSeconds = (at - systemClock.now()) / 1000
      if (leftSeconds > 0) return { requeueAfterSeconds: Math.min(leftSeconds, maxWaitSeconds) }
      const { uid, resourceVersion } = job.metadata
      const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
      await client
        .delete(jobs, { namespace, name }, { ...preconditions, propagationPolicy: 'Foreground', signal })
        .catch(tolerate('NotFound'))
      return undefined
    },
  })
}

/**
 * When the Job expires, in milliseconds of the wall clock; undefined for a Job that has not ended or has no
 * ttlSecondsAfterFinished.
 */
export function expiryMs(job: KubeObject): number | undefined {
  const [spec, status] = [job['spec'], job['status']]
  const ttl = isJsonObject(spec) ? spec['ttlSecondsAfterFinished'] : undefined
  const conditions = isJsonObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
  const ended = conditions.find(
    (one) => isJsonObject(one) && (one['type'] === 'Complete' || one['type'] === 'Failed') && one['status'] === 'True',
  )
  const time = isJsonObject(ended) ? ended['lastTransitionTime'] : undefined
  const endedMs = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return typeof ttl === 'number' && !Number.isNaN(endedMs) ? endedMs + ttl * 1000 : undefined
}
