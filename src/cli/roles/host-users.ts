// The host's users in the console: the user behind a token of the host, and whether the host lets this user reach a
// logical cluster. The answers are kept for seconds, as the host's API server keeps those of its own webhooks.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { FailureBudget, hostName, type Asking, type HostUsers } from '#virtualapi/index.ts'

interface ReviewedUser {
  username?: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
}

interface TokenReview extends KubeObject {
  spec: { token: string }
  status?: { authenticated?: boolean; user?: ReviewedUser }
}

interface AccessReview extends KubeObject {
  spec: object
  status?: { allowed?: boolean }
}

const tokenReviews: GroupVersionResource = { group: 'authentication.k8s.io', version: 'v1', resource: 'tokenreviews' }
const accessReviews: GroupVersionResource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'subjectaccessreviews',
}

/** How long an answer of the host counts, milliseconds. A token that the host revokes is accepted this much longer. */
const freshMs = 10_000
const maxTokens = 2000
const maxDecisions = 20_000

/** Asks the host through `client`, which may create TokenReviews and SubjectAccessReviews. */
export function createHostUsers(client: KubeClient, { clock = systemClock }: { clock?: Clock } = {}): HostUsers {
  const now = (): number => clock.monotonic()
  const users = new LRUCache<string, ReviewedUser>({ max: maxTokens, ttl: freshMs, perf: { now } })
  // Apart from the valid ones, so that they cannot displace them.
  const invalid = new LRUCache<string, true>({ max: maxTokens, ttl: freshMs, perf: { now } })
  const decisions = new LRUCache<string, boolean>({ max: maxDecisions, ttl: freshMs, perf: { now } })
  const failures = new FailureBudget({ clock })

  const review = async (token: string, { source, signal }: Asking): Promise<ReviewedUser | undefined> => {
    const key = hash('sha256', token, 'base64')
    const known = users.get(key)
    if (known !== undefined || invalid.has(key)) return known
    const giveBack = source === undefined ? undefined : failures.spend(source)
    const object: TokenReview = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      metadata: {},
      spec: { token },
    }
    const { status } = await client.create<TokenReview>(tokenReviews, object, { signal })
    if (status?.authenticated !== true || status.user?.username === undefined) {
      invalid.set(key, true)
      return undefined
    }
    giveBack?.()
    users.set(key, status.user)
    return status.user
  }

  return {
    async userOf(token, asking) {
      const user = await review(token, asking)
      if (user?.username === undefined) return undefined
      return {
        name: hostName(user.username),
        ...(user.uid !== undefined && user.uid !== '' && { uid: user.uid }),
        groups: [...new Set((user.groups ?? []).map(hostName))],
        extra: user.extra ?? {},
        realm: { kind: 'host' },
      }
    },
    async mayReach(token, { name, verb }, signal) {
      const key = `${verb} ${name} ${hash('sha256', token, 'base64')}`
      const known = decisions.get(key)
      if (known !== undefined) return known
      const { username, ...user } = (await review(token, { signal })) ?? {}
      if (username === undefined) return false
      const group = 'virtual.kcp.dev'
      const resourceAttributes = {
        group,
        version: 'v1alpha1',
        resource: 'logicalclusters',
        subresource: 'proxy',
        name,
        verb,
      }
      const spec = { ...user, user: username, resourceAttributes }
      const object: AccessReview = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        metadata: {},
        spec,
      }
      const { status } = await client.create<AccessReview>(accessReviews, object, { signal })
      const isAllowed = status?.allowed === true
      decisions.set(key, isAllowed)
      return isAllowed
    },
  }
}
