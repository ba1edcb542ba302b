// The review APIs by group and resource.
import { localSubjectAccessReview, selfSubjectAccessReview, subjectAccessReview } from './access-reviews.ts'
import { selfSubjectReview, tokenReview } from './identity-reviews.ts'
import type { Review } from './review.ts'
import { selfSubjectRulesReview } from './rules-review.ts'

export type { TokenReviewer } from '#virtualapi/auth/authn/token-reviewer.ts'
export type { Review, ReviewContext } from './review.ts'

const reviews: Readonly<Record<string, Review>> = {
  'selfsubjectaccessreviews.authorization.k8s.io': selfSubjectAccessReview,
  'subjectaccessreviews.authorization.k8s.io': subjectAccessReview,
  'localsubjectaccessreviews.authorization.k8s.io': localSubjectAccessReview,
  'selfsubjectrulesreviews.authorization.k8s.io': selfSubjectRulesReview,
  'selfsubjectreviews.authentication.k8s.io': selfSubjectReview,
  'tokenreviews.authentication.k8s.io': tokenReview,
}

/** The review that is served as this resource; undefined for other resources. */
export function reviewOf({
  group,
  resource,
}: {
  readonly group: string
  readonly resource: string
}): Review | undefined {
  return Object.hasOwn(reviews, `${resource}.${group}`) ? reviews[`${resource}.${group}`] : undefined
}
