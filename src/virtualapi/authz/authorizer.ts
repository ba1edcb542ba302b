// The contract of authorization.
import type { LogicalCluster } from '../clusters/directory.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { UserInfo } from '../authn/user-info.ts'

export interface Decision {
  readonly allowed: boolean
  /** For the review APIs and the audit line; never tells what exists. */
  readonly reason: string
}

/** What is asked for, apart from who asks: a RequestInfo reduced, so that review APIs can ask too. */
export interface Attributes {
  readonly verb: string
  readonly resource?: {
    readonly group: string
    readonly version: string
    readonly resource: string
    readonly subresource: string
    readonly namespace: string
    readonly name: string
  }
  /** Of non-resource requests. */
  readonly path?: string
}

export interface Authorizer {
  /** May `user` do this in `cluster`? Loads the logical cluster's RBAC where need be. */
  authorize(user: UserInfo, attributes: Attributes, cluster: LogicalCluster, signal: AbortSignal): Promise<Decision>
  /** May `user` read all logical clusters at once, or use the process's own paths? */
  authorizeAll(user: UserInfo, info: RequestInfo): Decision
}
