// Verifies tokens of pods in members: first with the member's keys, then with a TokenReview in the member, which checks
// that the bound pod exists.
import { decodeJwt } from 'jose'
import { tryClusterId, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { tryLocator } from '#crds/index.ts'
import type { MemberTokenIdentity, MemberTokens } from '#virtualapi/auth/authn/member-tokens.ts'
import type { MemberKeys } from './member-keys.ts'
import { memberUnavailable, type MemberConnection, type MemberConnections } from './member-connections.ts'

const tokenReviews = { group: 'authentication.k8s.io', version: 'v1', resource: 'tokenreviews' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const podNameKey = 'authentication.kubernetes.io/pod-name'
const podUidKey = 'authentication.kubernetes.io/pod-uid'

interface ReviewStatus {
  readonly authenticated?: boolean
  readonly audiences?: readonly string[]
  readonly user?: {
    readonly username?: string
    readonly extra?: Readonly<Record<string, readonly string[]>>
  }
}

/** Verifies tokens of these members. Results are not cached here, but by the caller. */
export function createMemberTokens({
  members,
  keys,
}: {
  members: MemberConnections
  keys: MemberKeys
}): Pick<MemberTokens, 'verify'> {
  return {
    async verify(memberId, token, signal) {
      const audience = audienceFor(memberId, token)
      if (audience === undefined) return undefined
      const member = await members.byId(memberId, signal)
      if (member === undefined) return undefined
      try {
        // A token that the member did not sign causes no TokenReview, because any client can make up a token.
        const claims = await keys.verify(member, token, audience, signal)
        if (claims === undefined) return undefined
        const identity = await review(member, token, audience, signal)
        if (identity !== undefined && claims.sub !== subjectOf(identity)) return undefined
        const clusterId = audience.slice(0, audience.indexOf('.'))
        return identity !== undefined && (await isPlaced(member, identity, clusterId, signal)) ? identity : undefined
      } catch (error) {
        if (signal.aborted) throw error
        throw memberUnavailable(member.name, error)
      }
    },
  }
}

/** The unverified audience `ID.MEMBER-ID` of the token, for the TokenReview; undefined if there is not exactly one. */
function audienceFor(memberId: string, token: string): string | undefined {
  try {
    const { aud } = decodeJwt(token)
    const matching = (typeof aud === 'string' ? [aud] : (aud ?? [])).filter(
      (audience) =>
        audience.endsWith(`.${memberId}`) && tryClusterId(audience.slice(0, -memberId.length - 1)) !== undefined,
    )
    return matching.length === 1 ? matching[0] : undefined
  } catch {
    return undefined
  }
}

async function review(
  { client }: MemberConnection,
  token: string,
  audience: string,
  signal: AbortSignal,
): Promise<MemberTokenIdentity | undefined> {
  const reviewRequest: KubeObject = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: {},
    spec: { token, audiences: [audience] },
  }
  const reviewed = await client.create<KubeObject>(tokenReviews, reviewRequest, { signal })
  const { authenticated, audiences = [], user } = (reviewed['status'] ?? {}) as ReviewStatus
  if (authenticated !== true || !audiences.includes(audience)) return undefined
  const [system, kind, namespace, name, ...rest] = (user?.username ?? '').split(':')
  if (system !== 'system' || kind !== 'serviceaccount' || !namespace || !name || rest.length > 0) return undefined
  const [podName] = user?.extra?.[podNameKey] ?? []
  const [podUid] = user?.extra?.[podUidKey] ?? []
  // Only tokens that are bound to a pod count, because other tokens could have been requested for any audience.
  if (podName === undefined || podUid === undefined) return undefined
  return { serviceAccount: { namespace, name }, podName, podUid }
}

function subjectOf({ serviceAccount: { namespace, name } }: MemberTokenIdentity): string {
  return `system:serviceaccount:${namespace}:${name}`
}

/**
 * True if the syncer placed the namespace for this logical cluster. The name of the namespace proves nothing, because
 * any user of the member could choose it.
 */
async function isPlaced(
  { client }: MemberConnection,
  { serviceAccount }: MemberTokenIdentity,
  clusterId: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const namespace = await client.get<KubeObject>(namespaces, { name: serviceAccount.namespace }, { signal })
    return tryLocator(namespace)?.clusterId === clusterId
  } catch (error) {
    if (isStatusError(error, 'NotFound')) return false
    throw error
  }
}
