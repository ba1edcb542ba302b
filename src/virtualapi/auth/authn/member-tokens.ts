// The contract for verifying tokens of pods in members. It is implemented in virtualapi/outbound/members.
import type { ClusterId } from '#apimachinery/meta/index.ts'

/** The claims of a token before anything is verified. */
export interface MemberTokenClaim {
  readonly clusterId: ClusterId
  readonly memberId: string
  /** The name in the logical cluster, as that of `serviceAccount`. */
  readonly namespace: string
  readonly serviceAccount: string
}

/** Identity in a token that the member's keys have signed and the member has reviewed. */
export interface MemberTokenIdentity {
  /** The ServiceAccount in the member; its namespace there is `ID-NAME`. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string }
  readonly podName?: string
  readonly podUid?: string
}

export interface MemberTokens {
  /**
   * The upstream ServiceAccount, if a workload that the scheduler placed on that member runs as it; undefined
   * otherwise. This is called for every request before anything is verified, so it reads only our own data and never
   * asks the member.
   */
  findPlacedAccount(claim: MemberTokenClaim, signal: AbortSignal): Promise<{ readonly uid: string } | undefined>
  /**
   * Verifies signature, expiry and audience with the member's published keys, then asks the member whether the bound
   * pod exists. Undefined: not a token of this member, or no such pod. Rejects with ServiceUnavailable if the member
   * cannot be reached.
   */
  verify(memberId: string, token: string, signal: AbortSignal): Promise<MemberTokenIdentity | undefined>
}
