// PATCH: JSON patch, merge patch, strategic merge patch. The patch is applied to what is there, inside the registry's retry.
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '../../apimachinery/meta/index.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from '../../apimachinery/patch/index.ts'
import { badRequest, notFound, unsupportedMediaType } from '../../apimachinery/status/index.ts'
import { jsonBytes } from '../codec/answers.ts'
import { decodeBody, fieldValidationOf, objectOf } from '../codec/read-object.ts'
import { viewOf } from '../codec/representations.ts'
import type { ResourceDefinition } from '../registry/resource-definition.ts'
import type { Answer } from '../server/exchange.ts'
import { requireSubresource, type Call } from './call.ts'
import { requireNamespace } from './create.ts'

type Apply = (document: JsonObject, patch: JsonValue) => JsonValue

/** How a patch of this Content-Type is applied to a resource. Throws 415, naming what is accepted. */
export function patchOf(contentType: string | undefined, { info, schema }: ResourceDefinition): Apply {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase()
  if (type === 'application/json-patch+json') return applyJsonPatch
  if (type === 'application/merge-patch+json') return applyMergePatch
  if (type === 'application/strategic-merge-patch+json' && info.builtIn && schema !== undefined)
    return (document, patch) => applyStrategicMergePatch(document, patch, schema)
  const accepted = ['application/json-patch+json', 'application/merge-patch+json']
  if (info.builtIn) accepted.push('application/strategic-merge-patch+json')
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}

export async function patchObject(call: Call): Promise<Answer> {
  const { definition, exchange, query, request, representation, parts, target } = call
  if (request.subresource !== '') requireSubresource(call)
  const fieldValidation = fieldValidationOf(query)
  const apply = patchOf(exchange.header('content-type'), definition)
  const { value: patch, duplicates } = decodeBody(await exchange.request.body(), undefined)
  const before = exchange.warnings.length
  const written = await parts.registry.update(target, request.name, {
    subresource: request.subresource,
    change: (current) => {
      if (current === undefined) throw notFound(definition.info, request.name)
      // Said once, for the try that counted.
      exchange.warnings.length = before
      const patched = apply(served(definition, current), patch)
      if (!isJsonObject(patched)) throw badRequest('the patched document is not an object')
      const object = objectOf(
        { value: patched, duplicates },
        { definition, fieldValidation, warnings: exchange.warnings },
      )
      requireNamespace(object.metadata.namespace, request.namespace)
      return definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
    },
  })
  return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(written.bytes))
}

function served({ fromStorage, info }: ResourceDefinition, stored: KubeObject): JsonObject {
  const object = fromStorage?.(stored) ?? {
    ...stored,
    apiVersion: info.group === '' ? info.version : `${info.group}/${info.version}`,
  }
  return object as unknown as JsonObject
}
