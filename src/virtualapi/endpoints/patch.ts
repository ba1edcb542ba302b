// PATCH: JSON patch, merge patch, strategic merge patch. The patch is applied to what is there, inside the registry's retry.
import { fieldInvalid, goPrint } from '../../apimachinery/field/index.ts'
import {
  apiVersionOf,
  encodeJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '../../apimachinery/meta/index.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from '../../apimachinery/patch/index.ts'
import { conversionErrors, typeErrors } from '../../apimachinery/schema/index.ts'
import { badRequest, invalid, isStatusError, notFound, unsupportedMediaType } from '../../apimachinery/status/index.ts'
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
  const contentType = exchange.header('content-type')
  const apply = patchOf(contentType, definition)
  const strategic = contentType?.includes('strategic-merge') === true
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
      // A strategic merge is read into the type that it began with, whatever the patch calls it.
      if (strategic) Object.assign(patched, { kind: definition.info.kind, apiVersion: apiVersionOf(definition.info) })
      const object = readable(patched, { definition, shown: strategic ? goPrint(patch) : undefined }, () =>
        objectOf({ value: patched, duplicates }, { definition, fieldValidation, warnings: exchange.warnings }),
      )
      requireNamespace(object.metadata.namespace, request.namespace)
      return definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
    },
  })
  return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(written.bytes))
}

/**
 * What `read` makes of the patched document. Where that fails because of the type of a value, a real server says so as 422 of
 * the patch: of the patch itself where it was strategic, else of all that came of it.
 */
function readable(
  patched: JsonObject,
  { definition, shown }: { definition: ResourceDefinition; shown: string | undefined },
  read: () => KubeObject,
): KubeObject {
  try {
    return read()
  } catch (error) {
    if (!isStatusError(error, 'BadRequest') || !definition.info.builtIn || definition.schema === undefined) throw error
    const [why] = (shown === undefined ? typeErrors : conversionErrors)(patched, definition.schema)
    if (why === undefined) throw error
    throw invalid({ group: '', kind: '' }, '', [fieldInvalid('patch', shown ?? encodeJson(patched), why)])
  }
}

function served({ fromStorage, info }: ResourceDefinition, stored: KubeObject): JsonObject {
  const object = fromStorage?.(stored) ?? {
    ...stored,
    apiVersion: info.group === '' ? info.version : `${info.group}/${info.version}`,
  }
  return object as unknown as JsonObject
}
