// PATCH with a JSON patch, a merge patch or a strategic merge patch; server-side apply is in apply.ts. The registry
// applies the patch to the current object, and applies it again after a conflict.
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
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { decodeBody, infiniteText, objectOf, type Decoded } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { UndecodableError } from '#virtualapi/kinds/resources/typed/decode-errors.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { applyObject } from './apply.ts'
import { dropClusterAnnotations } from '#virtualapi/endpoints/call/cluster-annotations.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { requireName, requireNamespace } from './create.ts'
import type { PatchType } from '#virtualapi/endpoints/call/patch-type.ts'

type Apply = (document: JsonObject, patch: JsonValue, work: WorkBudget) => JsonValue

/** The function that applies a patch of this type. Throws 415, naming the accepted types. */
export function patchFunction(type: PatchType | undefined, { info, schema }: ResourceDefinition): Apply {
  // A `null` patch changes nothing.
  if (type === 'json')
    return (document, patch, work) => (patch === null ? document : applyJsonPatch(document, patch, work))
  if (type === 'merge') return applyMergePatch
  if (type === 'strategic' && info.builtIn && schema !== undefined)
    return (document, patch) => {
      if (patch === null) return document
      const patched = applyStrategicMergePatch(document, patch, schema)
      if (isJsonObject(patched) && hasLargeNumber(patch)) truncateIntegers(patched, schema)
      // kube-apiserver applies the patch to Go fields, so it cannot change kind and apiVersion. Restore them.
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

export async function patchObject(call: EndpointCall): Promise<ApiResponse> {
  const { definition, exchange, representation, dependencies, patchType, request, target } = call
  if (request.subresource !== '') requireSubresource(call)
  if (patchType === 'apply') return applyObject(call)
  const apply = patchFunction(patchType, definition)
  const patch = readPatch(await exchange.request.body(), patchType)
  if (exchange.recordsRequest) exchange.requested(encodeJson(patch.value))
  const before = exchange.warnings.length
  const written = await dependencies.registry.update(target, request.name, {
    subresource: request.subresource,
    isPatch: true,
    change: (current) => {
      if (current === undefined) throw notFound(definition.info, request.name)
      // Drop the warnings of an earlier attempt that lost a conflict.
      exchange.warnings.length = before
      const object = patchedObject(call, { current, patch, apply })
      if (exchange.view !== undefined) dropClusterAnnotations(object)
      requireNamespace(object.metadata, request.namespace)
      requireName(object.metadata.name, request.name)
      return definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
    },
  })
  return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(written.bytes))
}

/** The current object with the patch applied, in the version of the request. */
function patchedObject(
  { definition, exchange, fieldValidation, patchType, target }: EndpointCall,
  { current, patch, apply }: { readonly current: KubeObject; readonly patch: Decoded; readonly apply: Apply },
): KubeObject {
  const { value, duplicates, literals } = patch
  const { work } = target.context
  const { warnings } = exchange
  const isStrategic = patchType === 'strategic'
  const document = toServedVersion(definition, current)
  // The patched document with numbers as they are written, if some are not plain integers: Go patches the bytes,
  // comparing the texts of numbers, and decodes the numbers only then.
  const written =
    literals === undefined || isStrategic ? undefined : (apply(document, literals() as JsonValue, work) as LiteralJson)
  const patched = apply(document, value, work)
  if (!isJsonObject(patched)) throw badRequest('the patched document is not an object')
  const decoded = { value: patched, duplicates, ...(written === undefined ? {} : { literals: () => written }) }
  return decodePatched(patched, { definition, shown: isStrategic ? goPrint(value) : undefined, written }, () =>
    objectOf(decoded, { definition, fieldValidation, warnings, duplicatesFirst: true }),
  )
}

/** Decodes the patch. Throws 400; as in kube-apiserver, the message depends on the patch type. */
function readPatch(body: Uint8Array, type: PatchType | undefined): Decoded {
  try {
    const decoded = decodeBody(body, undefined)
    if (decoded.infinite !== undefined)
      throw badRequest(
        infiniteText(decoded.infinite, type === 'json' ? 'Go struct field jsonPatchOp.value' : 'Go value'),
      )
    return { ...decoded, duplicates: strictErrorsOf(decoded, type) }
  } catch (error) {
    throw type === 'strategic' || !isStatusError(error, 'BadRequest')
      ? error
      : badRequest(`error decoding patch: ${error.message}`, error)
  }
}

const operationFields = new Set(['op', 'path', 'from', 'value'])

/** Duplicate fields and, in a JSON patch, unknown fields of its operations. */
function strictErrorsOf({ value, duplicates }: Decoded, type: PatchType | undefined): readonly string[] {
  if (type !== 'json' || !Array.isArray(value)) return duplicates
  const unknown = value.flatMap((operation, index) =>
    Object.keys(isJsonObject(operation) ? operation : {})
      .filter((field) => !operationFields.has(field))
      .map((field) => `unknown field "[${index}].${field}"`),
  )
  return [...duplicates, ...unknown].map((text) => `json patch ${text}`)
}

/**
 * Decodes the patched document with `decode`. A wrong type or an unknown field in it becomes 422 with field `patch`, as
 * in kube-apiserver. `shown` is the value that the error quotes (strategic merge patches); undefined: the patched
 * document.
 */
export function decodePatched(
  patched: JsonObject,
  {
    definition,
    shown,
    written,
  }: { definition: ResourceDefinition; shown: string | undefined; written?: LiteralJson | undefined },
  decode: () => KubeObject,
): KubeObject {
  try {
    return decode()
  } catch (error) {
    if (!isStatusError(error, 'BadRequest')) throw error
    const { fault, why: message } = error instanceof UndecodableError ? error : {}
    // In custom resources only the metadata is typed before validation.
    const isCustomType = fault === 'type' && !definition.info.builtIn
    const why =
      fault === 'field' || isCustomType ? message : typeErrorOf(written ?? patched, definition, shown !== undefined)
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

function toServedVersion({ fromStorage, info }: ResourceDefinition, stored: KubeObject): JsonObject {
  const object = fromStorage?.(stored) ?? {
    ...stored,
    apiVersion: info.group === '' ? info.version : `${info.group}/${info.version}`,
  }
  return object as unknown as JsonObject
}
