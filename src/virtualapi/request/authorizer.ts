// The contract of authorization.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { LogicalCluster } from './logical-cluster.ts'
import type { RequestInfo } from './request-info.ts'
import type { UserInfo } from './user-info.ts'

export interface Decision {
  readonly allowed: boolean
  /** The reason, for review APIs and the audit log. It never reveals what exists. */
  readonly reason: string
}

/** The intent of a request, without the user. It has less than RequestInfo, so that review APIs can build it too. */
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

/** The logical cluster of the decision, and how much the decision may cost. */
export interface AuthorizationContext {
  readonly cluster: LogicalCluster
  readonly work: WorkBudget
  readonly signal: AbortSignal
}

export interface Authorizer {
  /**
   * Decides whether `user` may do this in a logical cluster. Loads the logical cluster if necessary. Refuses a user
   * with more roles than `work` allows to evaluate, and says so in the reason. Returns no promise if no rule has to be
   * read.
   */
  authorize(user: UserInfo, attributes: Attributes, where: AuthorizationContext): Decision | Promise<Decision>
  /**
   * Decides about requests over all logical clusters and requests to the process's own paths (health, discovery,
   * metrics).
   */
  authorizeAll(user: UserInfo, info: RequestInfo): Decision
}
