// The contract of authorization.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { LogicalCluster } from './logical-cluster.ts'
import type { RequestInfo } from './request-info.ts'
import type { UserInfo } from './user-info.ts'

export interface Decision {
  readonly allowed: boolean
  /** For review APIs and the audit log. Never reveals what exists. */
  readonly reason: string
}

/** The intent of a request, without the user. Smaller than RequestInfo, so that review APIs can build it too. */
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
  /** The path of a non-resource request. */
  readonly path?: string
}

/** Where a user wants something, and how much the answer may cost. */
export interface AuthorizationContext {
  readonly cluster: LogicalCluster
  readonly work: WorkBudget
  readonly signal: AbortSignal
}

export interface Authorizer {
  /**
   * Decides whether `user` may do this in a logical cluster. Loads the logical cluster if necessary. A user with more
   * roles than `work` allows to evaluate is refused, with that as the reason. Answers at once where no rule has to be
   * read.
   */
  authorize(user: UserInfo, attributes: Attributes, where: AuthorizationContext): Decision | Promise<Decision>
  /** Decides about requests over all logical clusters and to the process's own paths (health, discovery, metrics). */
  authorizeAll(user: UserInfo, info: RequestInfo): Decision
}
