// Access reviews and identity reviews: kinds that are answered at once and never stored.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { methodNotServed, notAcceptable, pathNotFound } from '#apimachinery/status/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf } from '#virtualapi/codec/read-object.ts'
import { negotiate, supportedMediaTypes } from '#virtualapi/codec/negotiate.ts'
import { reviewOf } from '#virtualapi/auth/authz/reviews/index.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { writeOptionsOf } from '#virtualapi/endpoints/call/write-options.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType } from '#virtualapi/endpoints/verbs/create.ts'

export function isReview(target: ResourceTarget): boolean {
  return target.subresource === '' && reviewOf(target) !== undefined
}

/** The status before the answer, as kube-apiserver records it. */
function emptyStatus(kind: string): JsonObject {
  if (kind === 'TokenReview') return { user: {} }
  if (kind === 'SelfSubjectReview') return { userInfo: {} }
  if (kind === 'SelfSubjectRulesReview') return { resourceRules: null, nonResourceRules: null, incomplete: false }
  return { allowed: false }
}

/** Answers the POST of a review with the same object and its status. */
export async function createReview(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  target: ResourceTarget,
): Promise<ApiResponse> {
  const { cluster, info, user, work, signal } = exchange
  const review = reviewOf(target)
  const definition = dependencies.catalog.findBuiltIn(target)
  if (cluster === undefined || review === undefined || definition === undefined) throw pathNotFound()
  if (definition.info.namespaced !== (target.namespace !== '') || target.name !== '') throw pathNotFound()
  if (info.verb !== 'create') throw methodNotServed()
  if (negotiate(exchange.header('accept'), definition).as !== 'Object')
    throw notAcceptable(`only the following media types are accepted: ${supportedMediaTypes}`)
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, definition.info.kind)
  const object = objectOf(decoded, {
    definition,
    fieldValidation: writeOptionsOf(info.query, info.verb).fieldValidation,
    warnings: exchange.warnings,
  })
  recordGiven({ exchange }, exchange.recordsRequest ? { status: emptyStatus(definition.info.kind), ...object } : object)
  const { authorizer, tokenReviewer } = dependencies
  const now = dependencies.clock.now()
  const context = { user, cluster, namespace: target.namespace, authorizer, tokenReviewer, work, signal, now }
  return jsonDocument(await review(object, context), { status: 201 })
}
