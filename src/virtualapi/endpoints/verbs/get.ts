// GET of one object: answers with the bytes in memory without decoding them, unless another form is asked for.
import type { Revision } from '#apimachinery/meta/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { requireRevision, waitForRevision } from './read-position.ts'

export async function getObject(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  requireNoExport(call.query)
  const revision = askedRevision(call.query)
  if (revision !== undefined) await waitForRevision(call.dependencies, revision, call.exchange.signal)
  return answerWithObject(call)
}

/** The part of a GET that the offload thread can run, after `waitForAskedRevision`. */
export async function readObject(call: EndpointCall): Promise<ApiResponse> {
  requireNoExport(call.query)
  return answerWithObject(call)
}

/** Waits until the server knows the resourceVersion of the query, if there is one. Rejects like `waitForRevision`. */
export async function waitForAskedRevision({
  query,
  dependencies,
  exchange,
}: EndpointCall<EndpointDependencies>): Promise<void> {
  const revision = askedRevision(query)
  if (revision !== undefined) await waitForRevision(dependencies, revision, exchange.signal)
}

function askedRevision(query: URLSearchParams): Revision | undefined {
  const version = query.get('resourceVersion') ?? ''
  return version === '' || version === '0' ? undefined : requireRevision(version)
}

async function answerWithObject({
  definition,
  representation,
  query,
  dependencies,
  target,
  request,
}: EndpointCall): Promise<ApiResponse> {
  const bytes = await dependencies.registry.read(target, request.name)
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return jsonBytes(view.object(bytes))
}

/** Throws 400 for `export=true`: an old client would expect an object without the fields that servers set. */
function requireNoExport(query: URLSearchParams): void {
  const given = query.get('export')
  if (given !== null && isTrue(given))
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported')
}
