// When a Job that has ended is to be deleted.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'

/** Wall clock in milliseconds; undefined for a Job that has not ended or has no ttlSecondsAfterFinished. */
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
