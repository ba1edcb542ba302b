// SelfSubjectReview, which answers with the requesting user, and TokenReview, which answers with the user of a token.
import { timestamp } from '#async/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { answered, specOf, textOf, textsOf, userInfoOf, type Review } from './review.ts'

/** Answers with the requesting user. `kubectl auth whoami` uses this review. */
export const selfSubjectReview: Review = async (object, { user, now }) =>
  answered({ ...object, metadata: { creationTimestamp: timestamp(now) } }, { userInfo: userInfoOf(user) })

/** Authenticates a token of this logical cluster. Rejects with 400 if the token is empty. */
export const tokenReview: Review = async (object, { cluster, tokenReviewer, signal }) => {
  const { token, audiences } = specOf(object)
  if (textOf(token) === '') throw badRequest('token is required for TokenReview in authentication')
  const found = await tokenReviewer?.reviewToken(textOf(token), textsOf(audiences), cluster, signal)
  if (found === undefined) return answered(object, { user: {}, error: 'invalid bearer token' })
  return answered(object, { authenticated: true, user: userInfoOf(found.user), audiences: found.audiences })
}
