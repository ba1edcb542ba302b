// What TokenReview asks: whose token is this, in one logical cluster?
import type { LogicalCluster } from '../clusters/directory.ts'
import type { UserInfo } from './user-info.ts'

export interface ReviewedToken {
  readonly user: UserInfo
  /** Those asked for that the token is meant for. */
  readonly audiences: readonly string[]
}

export interface TokenReviewer {
  /** Undefined: nobody's here, or meant for none of `audiences` (empty: for this API). */
  reviewToken(
    token: string,
    audiences: readonly string[],
    cluster: LogicalCluster,
    signal: AbortSignal,
  ): Promise<ReviewedToken | undefined>
}
