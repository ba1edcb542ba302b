// Bearer tokens of pods: issued by members' kubelets, with an audience that names logical cluster and member.
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { LRUCache } from 'lru-cache'
import { tryClusterId, type ClusterId } from '../../apimachinery/meta/index.ts'
import type { Clock } from '../../async/index.ts'
import type { ClusterDirectory, LogicalCluster } from '../clusters/directory.ts'
import { FailureBudget } from './failure-budget.ts'
import type { MemberTokenIdentity, MemberTokens } from './member-tokens.ts'
import type { UserInfo } from './user-info.ts'

export interface TokenAuthentication {
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** The audience `ID.MEMBER-ID` of the token. */
  readonly audience: string
}

export interface BearerTokens {
  /**
   * The user of a valid token; `wanted` is the logical cluster of the path, if any. Undefined: the token is not valid. Rejects
   * with 429 if too many tokens of `source` were not.
   */
  authenticate(
    token: string,
    wanted: ClusterId | undefined,
    context: { readonly source: string; readonly signal: AbortSignal },
  ): Promise<TokenAuthentication | undefined>
}

/** How long a valid token is cached. The token of a deleted pod is accepted this much longer at most. */
const positiveMs = 60_000
/** How long an invalid token is cached, so that a retrying client does not cause a TokenReview each time. */
const negativeMs = 5_000
const maxCached = 20_000
/** Invalid tokens have a cache of their own, so that they cannot displace valid ones. */
const maxInvalid = 5_000
const maxTokenLength = 16 * 1024

/** Unverified claims of a token. They only say which member to ask. */
interface Claim {
  readonly clusterId: ClusterId
  readonly memberId: string
  readonly expiresMs: number
}

export function createBearerTokens(deps: {
  readonly memberTokens: MemberTokens | undefined
  readonly directory: ClusterDirectory
  readonly clock: Clock
}): BearerTokens {
  const { memberTokens, directory, clock } = deps
  const valid = new LRUCache<string, { user: UserInfo; expiresAt: number }>({ max: maxCached })
  const invalid = new LRUCache<string, { user: undefined; expiresAt: number }>({ max: maxInvalid })
  const failures = new FailureBudget({ clock })

  const review = async (token: string, claim: Claim, signal: AbortSignal): Promise<UserInfo | undefined> => {
    const identity = await memberTokens?.verify(claim.memberId, token, signal)
    return identity === undefined ? undefined : podUser(identity, claim.clusterId)
  }

  const userOf = async (
    token: string,
    claim: Claim,
    { source, signal }: { source: string; signal: AbortSignal },
  ): Promise<UserInfo | undefined> => {
    // The claim is part of the key: a token with several audiences may be valid for one logical cluster only.
    const key = createHash('sha256').update(`${claim.clusterId}.${claim.memberId}\0${token}`).digest('base64')
    const known = valid.get(key) ?? invalid.get(key)
    if (known !== undefined && clock.monotonic() < known.expiresAt) return known.user
    const giveBack = failures.spend(source)
    const user = await review(token, claim, signal).catch((error: unknown) => {
      // The member could not be asked, which is not the client's fault.
      if (!signal.aborted) giveBack()
      throw error
    })
    // The monotonic clock: if the wall clock is set back, entries must not live longer.
    if (user === undefined) invalid.set(key, { user, expiresAt: clock.monotonic() + negativeMs })
    else {
      giveBack()
      valid.set(key, { user, expiresAt: clock.monotonic() + positiveMs })
    }
    return user
  }

  return {
    authenticate: async (token, wanted, context) => {
      const claim = claimOf(token, wanted)
      if (claim === undefined || clock.now() >= claim.expiresMs) return undefined
      const cluster = directory.byId(claim.clusterId)
      if (cluster === undefined) return undefined
      const user = await userOf(token, claim, context)
      return user === undefined ? undefined : { user, cluster, audience: `${claim.clusterId}.${claim.memberId}` }
    },
  }
}

/**
 * The unverified claim of the token: its only audience `ID.MEMBER-ID` or, if the path names a logical cluster, the only one
 * for that. Undefined if several audiences fit.
 */
function claimOf(token: string, wanted: ClusterId | undefined): Claim | undefined {
  if (token.length > maxTokenLength) return undefined
  try {
    const { aud, exp } = decodeJwt(token)
    if (typeof exp !== 'number') return undefined
    const claims: Claim[] = []
    for (const audience of typeof aud === 'string' ? [aud] : (aud ?? [])) {
      const dot = audience.indexOf('.')
      const clusterId = dot < 0 ? undefined : tryClusterId(audience.slice(0, dot))
      if (clusterId === undefined || (wanted !== undefined && clusterId !== wanted)) continue
      claims.push({ clusterId, memberId: audience.slice(dot + 1), expiresMs: exp * 1000 })
    }
    return claims.length === 1 ? claims[0] : undefined
  } catch {
    return undefined
  }
}

/** The upstream ServiceAccount of a member's ServiceAccount; undefined if its namespace is not one of this logical cluster. */
function podUser({ serviceAccount, podName, podUid }: MemberTokenIdentity, clusterId: ClusterId): UserInfo | undefined {
  const prefix = `${clusterId}-`
  if (!serviceAccount.namespace.startsWith(prefix)) return undefined
  const namespace = serviceAccount.namespace.slice(prefix.length)
  if (namespace === '' || serviceAccount.name === '') return undefined
  return {
    name: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    uid: serviceAccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: {
      ...(podName === undefined ? {} : { 'authentication.kubernetes.io/pod-name': [podName] }),
      ...(podUid === undefined ? {} : { 'authentication.kubernetes.io/pod-uid': [podUid] }),
    },
    realm: { kind: 'cluster', id: clusterId },
  }
}
