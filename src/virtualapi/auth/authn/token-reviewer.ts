// The contract behind TokenReview: finds the user of a token in one logical cluster.
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

export interface ReviewedToken {
  readonly user: UserInfo
  /** The requested audiences that the token is valid for. */
  readonly audiences: readonly string[]
}

export interface TokenReviewer {
  /**
   * The user of the token; undefined if the token is invalid here or valid for none of `audiences`. Empty `audiences`
   * stand for the audience of this API.
   */
  reviewToken(
    token: string,
    audiences: readonly string[],
    cluster: LogicalCluster,
    signal: AbortSignal,
  ): Promise<ReviewedToken | undefined>
}
