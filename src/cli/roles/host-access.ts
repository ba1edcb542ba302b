// The host's answer to whether one of its users may use a member or a logical cluster. It is kept for a second, so that
// a controller with many requests does not ask the host each time, and so that a revoked right counts soon.
import { LRUCache } from 'lru-cache'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { AskHost } from '#virtualapi/index.ts'

interface AccessReview extends KubeObject {
  spec: object
  status?: { allowed?: boolean }
}

const accessReviews: GroupVersionResource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'subjectaccessreviews',
}
const freshMs = 1000
const maxDecisions = 5000

/** Asks the host through `client`, which may create SubjectAccessReviews. Rejects if the host does not answer. */
export function createHostAccess(client: KubeClient, { clock = systemClock }: { clock?: Clock } = {}): AskHost {
  const now = (): number => clock.monotonic()
  const decisions = new LRUCache<string, boolean>({ max: maxDecisions, ttl: freshMs, perf: { now } })
  return async ({ name, uid, groups }, { verb, resource }, signal) => {
    const { resource: plural = '', subresource = '', group = '', version = '', name: of = '' } = resource ?? {}
    const resourceAttributes = { group, version, resource: plural, subresource, name: of, verb }
    const spec = { user: name, ...(uid !== undefined && { uid }), groups, resourceAttributes }
    const key = JSON.stringify(spec)
    const known = decisions.get(key)
    if (known !== undefined) return known
    const object = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec }
    const { status } = await client.create<AccessReview>(accessReviews, object, { signal })
    const isAllowed = status?.allowed === true
    decisions.set(key, isAllowed)
    return isAllowed
  }
}
