// The contract for verifying tokens of pods in members. Implemented in virtualapi/members.

/** Identity in a member's token, as that member verified it. */
export interface MemberTokenIdentity {
  /** `namespace` is the member's: `ID-NAME`. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly podName?: string
  readonly podUid?: string
}

export interface MemberTokens {
  /**
   * Verifies signature, expiry and audience with that member's own keys, and that the ServiceAccount is used by a pod
   * placed there for the logical cluster of the audience. Undefined: not a token of this member, or no such pod.
   * Rejects with ServiceUnavailable if the member cannot be reached.
   */
  verify(memberId: string, token: string, signal: AbortSignal): Promise<MemberTokenIdentity | undefined>
}
