// The contract of verifying tokens that members' kubelets gave to pods. Implemented in virtualapi/members.

/** What a member says of a token of one of its ServiceAccounts. */
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
   * Rejects ServiceUnavailable when the member can't be asked.
   */
  verify(memberId: string, token: string, signal: AbortSignal): Promise<MemberTokenIdentity | undefined>
}
