// Writes the condition Available of APIServices through the API, so webhooks and watchers see it as any other write.
import type { ClusterName, GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import type { WriteAvailable } from './availability.ts'
import { apiServiceKey } from './remote-api-service.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'

const apiServices: GroupVersionResource = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' }

interface Condition {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime?: string
  readonly reason?: string
  readonly message?: string
}

/**
 * Creates the function that writes the condition. It writes only a changed condition; the time of the last transition
 * changes only with the status.
 */
export function writeAvailable({
  watchCache,
  directory,
  clock,
  client,
}: {
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly directory: Pick<ClusterDirectory, 'byId'>
  readonly clock: Clock
  readonly client: (cluster: ClusterName) => KubeClient
}): WriteAvailable {
  return async (id, name, { status, reason, message }, signal) => {
    const cluster = directory.byId(id)
    const entry = (await watchCache.cluster(id, { signal })).get(apiServiceKey, '', name)
    if (cluster === undefined || entry === undefined) return
    const object = decodeObject(entry.bytes) as KubeObject & { status?: { conditions?: readonly Condition[] } }
    const conditions = object.status?.conditions ?? []
    const before = conditions.find(({ type }) => type === 'Available')
    if (before?.status === status && before.reason === reason && before.message === message) return
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`
    const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now
    const condition: Condition = { type: 'Available', status, lastTransitionTime, reason, message }
    const next =
      before === undefined ? [...conditions, condition] : conditions.map((one) => (one === before ? condition : one))
    const changed = { ...object, status: { ...object.status, conditions: next } }
    await client(cluster.name).update(apiServices, changed, { subresource: 'status', signal })
  }
}
