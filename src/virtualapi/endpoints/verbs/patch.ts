// PATCH: JSON patch, merge patch, strategic merge patch; apply.ts is server-side apply. The registry applies it to the current object, again on a conflict.
import type { LiteralJson } from '#apimachinery/json/index.ts'
import { fieldInvalid } from '#apimachinery/field/index.ts'
import { goPrint } from '#apimachinery/text/index.ts'
import {
  apiVersionOf,
  encodeJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from '#apimachinery/patch/index.ts'
import { conversionErrors, hasLargeNumber, truncateIntegers, typeErrors } from '#apimachinery/schema/index.ts'
import {
  badRequest,
  invalid,
  isStatusError,
  notFound,
  statusError,
  unsupportedMediaType,
} from '#apimachinery/status/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { jsonBytes } from '#virtualapi/codec/answers.ts'
import { decodeBody, infiniteText, objectOf, type Decoded } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Answer } from '#virtualapi/request/exchange.ts'
import { applyObject } from './apply.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { requireName, requireNamespace } from './create.ts'
import { isApply } from '#virtualapi/endpoints/call/field-manager.ts'

type Apply = (document: JsonObject, patch: JsonValue, work: WorkBudget) => JsonValue

/** The function that applies a patch of this Content-Type. Throws 415, naming the accepted types. */
export function patchFunction(contentType: string | undefined, { info, schema }: ResourceDefinition): Apply {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase()
  // A `null` patch changes nothing.
  if (type === 'application/json-patch+json')
    return (document, patch, work) => (patch === null ? document : applyJsonPatch(document, patch, work))
  if (type === 'application/merge-patch+json') return applyMergePatch
  if (type === 'application/strategic-merge-patch+json' && info.builtIn && schema !== undefined)
    return (document, patch) => {
      if (patch === null) return document
      const patched = applyStrategicMergePatch(document, patch, schema)
      if (isJsonObject(patched) && hasLargeNumber(patch)) truncateIntegers(patched, schema)
      // Upstream applies the patch to Go fields, so it cannot change kind and apiVersion. Restore them.
      if (!isJsonObject(patched)) return patched
      const { kind = info.kind, apiVersion = apiVersionOf(info) } = document
      return { ...patched, kind, apiVersion }
    }
  if (info.builtIn) throw statusError(415, 'UnsupportedMediaType', '415: Unsupported Media Type', { details: {} })
  const accepted = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}

export async function patchObject(call: EndpointCall): Promise<Answer> {
  const { definition, exchange, fieldValidation, request, representation, parts, target } = call
  if (request.subresource !== '') requireSubresource(call)
  const contentType = exchange.header('content-type')
  if (isApply(contentType)) return applyObject(call)
  const apply = patchFunction(contentType, definition)
  const strategic = contentType?.includes('strategic-merge') === true
  const { value: patch, duplicates, literals } = readPatch(await exchange.request.body(), contentType)
  const before = exchange.warnings.length
  const written = await parts.registry.update(target, request.name, {
    subresource: request.subresource,
    isPatch: true,
    change: (current) => {
      if (current === undefined) throw notFound(definition.info, request.name)
      // Drop the warnings of an earlier attempt that lost a conflict.
      exchange.warnings.length = before
      const document = toServedVersion(definition, current)
      // Numbers other than plain integers as they are written: Go decodes them, and compares their texts, after it has patched the bytes.
      const written =
        literals === undefined || strategic
          ? undefined
          : (apply(document, literals() as JsonValue, target.context.work) as LiteralJson)
      const patched = apply(document, patch, target.context.work)
      if (!isJsonObject(patched)) throw badRequest('the patched document is not an object')
      const { warnings } = exchange
      const decoded = { value: patched, duplicates, ...(written === undefined ? {} : { literals: () => written }) }
      const object = readable(patched, { definition, shown: strategic ? goPrint(patch) : undefined, written }, () =>
        objectOf(decoded, { definition, fieldValidation, warnings, duplicatesFirst: true }),
      )
      requireNamespace(object.metadata, request.namespace)
      requireName(object.metadata.name, request.name)
      return definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
    },
  })
  return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(written.bytes))
}

/** Decodes the patch. Throws 400; the message depends on the patch type, as upstream's does. */
function readPatch(body: Uint8Array, contentType: string | undefined): Decoded {
  try {
    const decoded = decodeBody(body, undefined)
    const isJsonPatch = contentType?.includes('json-patch') === true
    if (decoded.infinite !== undefined)
      throw badRequest(infiniteText(decoded.infinite, isJsonPatch ? 'Go struct field jsonPatchOp.value' : 'Go value'))
    return { ...decoded, duplicates: strictErrorsOf(decoded, contentType) }
  } catch (error) {
    const isStrategic = contentType?.includes('strategic') === true
    throw isStrategic || !isStatusError(error, 'BadRequest')
      ? error
      : badRequest(`error decoding patch: ${error.message}`, error)
  }
}

const operationFields = new Set(['op', 'path', 'from', 'value'])

/** Duplicate fields and, in a JSON patch, unknown fields of its operations. */
function strictErrorsOf({ value, duplicates }: Decoded, contentType: string | undefined): readonly string[] {
  if (contentType?.includes('json-patch') !== true || !Array.isArray(value)) return duplicates
  const unknown = value.flatMap((operation, index) =>
    Object.keys(isJsonObject(operation) ? operation : {})
      .filter((field) => !operationFields.has(field))
      .map((field) => `unknown field "[${index}].${field}"`),
  )
  return [...duplicates, ...unknown].map((text) => `json patch ${text}`)
}

/**
 * Decodes the patched document with `read`. A wrong type or an unknown field in it becomes 422 with field `patch`, as in
 * kube-apiserver. `shown` is the value that the error quotes (strategic merge patches); undefined: the patched document.
 */
export function readable(
  patched: JsonObject,
  {
    definition,
    shown,
    written,
  }: { definition: ResourceDefinition; shown: string | undefined; written?: LiteralJson | undefined },
  read: () => KubeObject,
): KubeObject {
  try {
    return read()
  } catch (error) {
    if (!isStatusError(error, 'BadRequest')) throw error
    const strict = / cannot be handled as a \S+: (strict decoding error: .*)$/s.exec(error.message)?.[1]
    const why =
      strict ?? typeErrorOf(written ?? patched, definition, shown !== undefined) ?? customTypeError(definition, error)
    if (why === undefined) throw error
    throw invalid({ group: '', kind: '' }, '', [fieldInvalid('patch', shown ?? encodeJson(patched), why)])
  }
}

function typeErrorOf(
  patched: LiteralJson,
  { info, schema }: ResourceDefinition,
  strategic: boolean,
): string | undefined {
  if (!info.builtIn || schema === undefined) return undefined
  return strategic ? conversionErrors(patched as JsonValue, schema)[0] : typeErrors(patched, schema)[0]
}

/** In custom resources only the metadata is typed before validation. */
function customTypeError({ info }: ResourceDefinition, { message }: Error): string | undefined {
  return info.builtIn ? undefined : / cannot be handled as a \S+: (json: cannot unmarshal .*)$/s.exec(message)?.[1]
}

function toServedVersion({ fromStorage, info }: ResourceDefinition, stored: KubeObject): JsonObject {
  const object = fromStorage?.(stored) ?? {
    ...stored,
    apiVersion: info.group === '' ? info.version : `${info.group}/${info.version}`,
  }
  return object as unknown as JsonObject
}
