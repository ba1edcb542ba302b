// PUT of an object or of one of its subresources.
import { cloneJson } from '#apimachinery/meta/index.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { recordObject } from '#virtualapi/endpoints/call/record-request.ts'
import { dropClusterAnnotations } from '#virtualapi/endpoints/call/cluster-annotations.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { requireContentType, requireName, requireNamespace } from './create.ts'

export async function updateObject(call: EndpointCall): Promise<ApiResponse> {
  const { definition, exchange, fieldValidation, request, representation, dependencies, target } = call
  if (request.subresource !== '') requireSubresource(call)
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, definition.info.kind)
  const object = objectOf(decoded, { definition, fieldValidation, warnings: exchange.warnings })
  if (exchange.view !== undefined) dropClusterAnnotations(object)
  recordObject(call, object)
  requireNamespace(object.metadata, request.namespace)
  requireName(object.metadata.name, request.name)
  const written = await dependencies.registry.update(target, request.name, {
    subresource: request.subresource,
    // A new copy for every attempt: the registry changes it.
    change: () => {
      const copy = cloneJson(object)
      return definition.toStorage?.(copy) ?? { ...copy, apiVersion: definition.storageApiVersion }
    },
  })
  const view = viewOf(definition, representation, { now: target.context.now })
  return jsonBytes(view.object(written.bytes), { status: written.created ? 201 : 200 })
}
