// PATCH: JSON patch, merge patch, strategic merge patch. The patch is applied to what is there, inside the registry's retry.
import { fieldInvalid } from '../../apimachinery/field/index.ts'
import { goPrint } from '../../apimachinery/text/index.ts'
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
import {
  badRequest,
  invalid,
  isStatusError,
  notFound,
  statusError,
  unsupportedMediaType,
} from '../../apimachinery/status/index.ts'
import { jsonBytes } from '../codec/answers.ts'
import { decodeBody, objectOf, type Decoded } from '../codec/read-object.ts'
import { viewOf } from '../codec/representations.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'
import type { Answer } from '../exchange/exchange.ts'
import { requireSubresource, type EndpointCall } from './endpoint-call.ts'
import { requireName, requireNamespace } from './create.ts'

type Apply = (document: JsonObject, patch: JsonValue) => JsonValue

/** How a patch of this Content-Type is applied to a resource. Throws 415, naming what is accepted. */
export function patchOf(contentType: string | undefined, { info, schema }: ResourceDefinition): Apply {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase()
  // A patch that is null changes nothing.
  if (type === 'application/json-patch+json')
    return (document, patch) => (patch === null ? document : applyJsonPatch(document, patch))
  if (type === 'application/merge-patch+json') return applyMergePatch
  if (type === 'application/strategic-merge-patch+json' && info.builtIn && schema !== undefined)
    return (document, patch) => {
      if (patch === null) return document
      const patched = applyStrategicMergePatch(document, patch, schema)
      // Upstream patches the fields of the kind here, not the text: what kind it is is no field.
      if (!isJsonObject(patched)) return patched
      const { kind = info.kind, apiVersion = apiVersionOf(info) } = document
      return { ...patched, kind, apiVersion }
    }
  if (info.builtIn) throw statusError(415, 'UnsupportedMediaType', '415: Unsupported Media Type', { details: {} })
  const accepted = ['application/json-patch+json', 'application/merge-patch+json']
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}

export async function patchObject(call: EndpointCall): Promise<Answer> {
  const { definition, exchange, fieldValidation, request, representation, parts, target } = call
  if (request.subresource !== '') requireSubresource(call)
  const contentType = exchange.header('content-type')
  const apply = patchOf(contentType, definition)
  const strategic = contentType?.includes('strategic-merge') === true
  const { value: patch, duplicates } = readPatch(await exchange.request.body(), contentType)
  const before = exchange.warnings.length
  const written = await parts.registry.update(target, request.name, {
    subresource: request.subresource,
    isPatch: true,
    change: (current) => {
      if (current === undefined) throw notFound(definition.info, request.name)
      // Said once, for the try that counted.
      exchange.warnings.length = before
      const patched = apply(served(definition, current), patch)
      if (!isJsonObject(patched)) throw badRequest('the patched document is not an object')
      const { warnings } = exchange
      const object = readable(patched, { definition, shown: strategic ? goPrint(patch) : undefined }, () =>
        objectOf({ value: patched, duplicates }, { definition, fieldValidation, warnings, duplicatesFirst: true }),
      )
      requireNamespace(object.metadata, request.namespace)
      requireName(object.metadata.name, request.name)
      return definition.toStorage?.(object) ?? { ...object, apiVersion: definition.storageApiVersion }
    },
  })
  return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(written.bytes))
}

/** The patch as a document. Throws 400, for some types in words of their own. */
function readPatch(body: Uint8Array, contentType: string | undefined): Decoded {
  try {
    const decoded = decodeBody(body, undefined)
    return { ...decoded, duplicates: complaintsOf(decoded, contentType) }
  } catch (error) {
    const isStrategic = contentType?.includes('strategic') === true
    throw isStrategic || !isStatusError(error, 'BadRequest')
      ? error
      : badRequest(`error decoding patch: ${error.message}`, error)
  }
}

const operationFields = new Set(['op', 'path', 'from', 'value'])

/** What is given twice and, of a JSON patch, what its operations do not have. */
function complaintsOf({ value, duplicates }: Decoded, contentType: string | undefined): readonly string[] {
  if (contentType?.includes('json-patch') !== true || !Array.isArray(value)) return duplicates
  const unknown = value.flatMap((operation, index) =>
    Object.keys(isJsonObject(operation) ? operation : {})
      .filter((field) => !operationFields.has(field))
      .map((field) => `unknown field "[${index}].${field}"`),
  )
  return [...duplicates, ...unknown].map((text) => `json patch ${text}`)
}

/**
 * What `read` makes of the patched document. Where that fails because of the type of a value, or of a field that there is not,
 * a real server says so as 422 of the patch: of the patch itself where it was strategic, else of all that came of it.
 */
export function readable(
  patched: JsonObject,
  { definition, shown }: { definition: ResourceDefinition; shown: string | undefined },
  read: () => KubeObject,
): KubeObject {
  try {
    return read()
  } catch (error) {
    if (!isStatusError(error, 'BadRequest')) throw error
    const strict = / cannot be handled as a \S+: (strict decoding error: .*)$/s.exec(error.message)?.[1]
    const why = strict ?? typeErrorOf(patched, definition, shown !== undefined) ?? customTypeError(definition, error)
    if (why === undefined) throw error
    throw invalid({ group: '', kind: '' }, '', [fieldInvalid('patch', shown ?? encodeJson(patched), why)])
  }
}

function typeErrorOf(
  patched: JsonObject,
  { info, schema }: ResourceDefinition,
  strategic: boolean,
): string | undefined {
  if (!info.builtIn || schema === undefined) return undefined
  return (strategic ? conversionErrors : typeErrors)(patched, schema)[0]
}

/** Of custom resources the metadata alone has types to be wrong about before validation. */
function customTypeError({ info }: ResourceDefinition, { message }: Error): string | undefined {
  return info.builtIn ? undefined : / cannot be handled as a \S+: (json: cannot unmarshal .*)$/s.exec(message)?.[1]
}

function served({ fromStorage, info }: ResourceDefinition, stored: KubeObject): JsonObject {
  const object = fromStorage?.(stored) ?? {
    ...stored,
    apiVersion: info.group === '' ? info.version : `${info.group}/${info.version}`,
  }
  return object as unknown as JsonObject
}
