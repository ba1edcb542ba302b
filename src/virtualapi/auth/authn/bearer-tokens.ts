// Bearer tokens of pods: issued by members' kubelets, with an audience that names logical cluster and member.
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { LRUCache } from 'lru-cache'
import { tryClusterId, type ClusterId } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { FailureBudget } from './failure-budget.ts'
import type { MemberTokenClaim, MemberTokenIdentity, MemberTokens } from './member-tokens.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

export interface TokenAuthentication {
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** The audience `ID.MEMBER-ID` of the token. */
  readonly audience: string
}

export interface BearerTokens {
  /**
   * The user of a valid token; `wanted` is the logical cluster of the path, if any. Undefined: the token is not valid.
   * Rejects with 429 if too many tokens of `source` were invalid.
   */
  authenticate(
    token: string,
    wanted: ClusterId | undefined,
    context: { readonly source: string; readonly signal: AbortSignal },
  ): Promise<TokenAuthentication | undefined>
}

/** How long the review of a valid token is cached. The token of a deleted pod is accepted this much longer at most. */
const positiveMs = 60_000
/** How long an invalid token is cached, so that a retrying client does not cause a TokenReview each time. */
const negativeMs = 5_000
const maxCached = 20_000
/** Invalid tokens have a cache of their own, so that they cannot displace valid ones. */
const maxInvalid = 5_000
const maxTokenLength = 16 * 1024

/** Unverified claims of a token. They say which workloads to look for, and which member to ask. */
interface Claim extends MemberTokenClaim {
  readonly expiresMs: number
}

export function createBearerTokens(deps: {
  readonly memberTokens: MemberTokens | undefined
  readonly directory: ClusterDirectory
  readonly clock: Clock
}): BearerTokens {
  const { memberTokens, directory, clock } = deps
  const valid = new LRUCache<string, { pod: BoundPod; expiresAt: number }>({ max: maxCached })
  const invalid = new LRUCache<string, { pod: undefined; expiresAt: number }>({ max: maxInvalid })
  const failures = new FailureBudget({ clock })

  const review = async (token: string, claim: Claim, signal: AbortSignal): Promise<BoundPod | undefined> => {
    const identity = await memberTokens?.verify(claim.memberId, token, signal)
    return identity !== undefined && isOf(identity, claim) ? identity : undefined
  }

  const podOf = async (
    token: string,
    claim: Claim,
    { source, signal }: { source: string; signal: AbortSignal },
  ): Promise<BoundPod | undefined> => {
    // The claim is part of the key: a token with several audiences may be valid for one logical cluster only.
    const key = createHash('sha256').update(`${claim.clusterId}.${claim.memberId}\0${token}`).digest('base64')
    const known = valid.get(key) ?? invalid.get(key)
    if (known !== undefined && clock.monotonic() < known.expiresAt) return known.pod
    const giveBack = failures.spend(source)
    const pod = await review(token, claim, signal).catch((error: unknown) => {
      // The member could not be asked, which is not the client's fault.
      if (!signal.aborted) giveBack()
      throw error
    })
    // The monotonic clock: if the wall clock is set back, entries must not live longer.
    if (pod === undefined) invalid.set(key, { pod, expiresAt: clock.monotonic() + negativeMs })
    else {
      giveBack()
      valid.set(key, { pod, expiresAt: clock.monotonic() + positiveMs })
    }
    return pod
  }

  return {
    authenticate: async (token, wanted, context) => {
      const claim = claimOf(token, wanted)
      if (claim === undefined || clock.now() >= claim.expiresMs) return undefined
      const cluster = directory.byId(claim.clusterId)
      if (cluster === undefined) return undefined
      // Our own data is read first, for cached tokens too: when the last workload of a ServiceAccount is gone, its
      // tokens are refused at once.
      const account = await memberTokens?.findPlacedAccount(claim, context.signal)
      if (account === undefined) return undefined
      const pod = await podOf(token, claim, context)
      if (pod === undefined) return undefined
      return { user: podUser(claim, account.uid, pod), cluster, audience: `${claim.clusterId}.${claim.memberId}` }
    },
  }
}

/**
 * The unverified claim of the token: its only audience `ID.MEMBER-ID` or, if the path names a logical cluster, its only
 * audience for that logical cluster. Undefined if no audience or more than one fits.
 */
function claimOf(token: string, wanted: ClusterId | undefined): Claim | undefined {
  if (token.length > maxTokenLength) return undefined
  try {
    const { aud, exp, sub } = decodeJwt(token)
    const [system, kind, namespace = '', serviceAccount = '', ...rest] = sub?.split(':') ?? []
    if (typeof exp !== 'number' || system !== 'system' || kind !== 'serviceaccount' || rest.length > 0) return undefined
    const audiences = (typeof aud === 'string' ? [aud] : (aud ?? [])).map(parseAudience)
    const fitting = audiences.filter(
      (audience) => audience !== undefined && (wanted ?? audience.clusterId) === audience.clusterId,
    )
    const [audience] = fitting
    if (audience === undefined || fitting.length !== 1) return undefined
    // The token names the namespace in the member, `ID-NAME`; it must be a namespace of the audience's logical cluster.
    const prefix = `${audience.clusterId}-`
    if (!namespace.startsWith(prefix) || namespace === prefix || serviceAccount === '') return undefined
    return { ...audience, namespace: namespace.slice(prefix.length), serviceAccount, expiresMs: exp * 1000 }
  } catch {
    return undefined
  }
}

function parseAudience(audience: string): Pick<Claim, 'clusterId' | 'memberId'> | undefined {
  const dot = audience.indexOf('.')
  const clusterId = dot < 0 ? undefined : tryClusterId(audience.slice(0, dot))
  return clusterId === undefined ? undefined : { clusterId, memberId: audience.slice(dot + 1) }
}

type BoundPod = Pick<MemberTokenIdentity, 'podName' | 'podUid'>

/** True if the verified ServiceAccount is the claimed one, by which our own data was read before. */
function isOf({ serviceAccount }: MemberTokenIdentity, claim: Claim): boolean {
  return (
    serviceAccount.namespace === `${claim.clusterId}-${claim.namespace}` && serviceAccount.name === claim.serviceAccount
  )
}

function podUser(
  { clusterId, namespace, serviceAccount }: Claim,
  uid: string,
  { podName, podUid }: BoundPod,
): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${serviceAccount}`,
    uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: {
      ...(podName === undefined ? {} : { 'authentication.kubernetes.io/pod-name': [podName] }),
      ...(podUid === undefined ? {} : { 'authentication.kubernetes.io/pod-uid': [podUid] }),
    },
    realm: { kind: 'cluster', id: clusterId },
  }
}
