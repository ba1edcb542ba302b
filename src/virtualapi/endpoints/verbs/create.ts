// POST of a new object.
import type { ObjectMeta } from '#apimachinery/meta/index.ts'
import { badRequest, unsupportedMediaType } from '#apimachinery/status/index.ts'
import { keepUidHeader } from '#crds/index.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { recordObject } from '#virtualapi/endpoints/call/record-request.ts'
import { dropClusterAnnotations } from '#virtualapi/endpoints/call/cluster-annotations.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'

export async function createObject(call: EndpointCall): Promise<ApiResponse> {
  const { definition, exchange, fieldValidation, request, representation, dependencies, target } = call
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, definition.info.kind)
  const object = objectOf(decoded, { definition, fieldValidation, warnings: exchange.warnings })
  if (exchange.view !== undefined) dropClusterAnnotations(object)
  recordObject(call, object)
  requireNamespace(object.metadata, request.namespace)
  const keepUid = exchange.user.realm.kind === 'installation' && exchange.header(keepUidHeader) === 'true'
  const stored = definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
  const written = await dependencies.registry.create(target, stored, { keepUid })
  const view = viewOf(definition, representation, { now: target.context.now })
  return jsonBytes(view.object(written.bytes), { status: 201 })
}

/** Throws 400 if the object's namespace is not that of the URL. Drops metadata.namespace of cluster-scoped objects. */
export function requireNamespace(metadata: ObjectMeta, expected: string): void {
  if (expected === '') delete metadata.namespace
  else if (metadata.namespace && metadata.namespace !== expected)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}

/** Throws 400 if the object's name is absent or not that of the URL. */
export function requireName(given: string | undefined, expected: string): void {
  if (!given)
    throw badRequest(`the name of the object (${expected} based on URL) was undeterminable: name must be provided`)
  if (given !== expected)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${expected})`)
}

/** Throws 415 for a patch media type where an object is expected; else returns the Content-Type. */
export function requireContentType(contentType: string | undefined): string | undefined {
  if (contentType?.includes('patch') === true)
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`,
    )
  return contentType
}
