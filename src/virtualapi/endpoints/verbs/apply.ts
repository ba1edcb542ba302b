// Server-side apply (KEP-555): PATCH with a configuration. The server finds the fields that the configuration sets, and
// the fields that it no longer sets.
import { hasLargeNumber, truncateIntegers } from '#apimachinery/schema/index.ts'
import { goKind } from '#apimachinery/patch/index.ts'
import { cloneJson, encodeJson, isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, isStatusError, notFound } from '#apimachinery/status/index.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { decodeBody, type Decoded, type FieldValidation } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { applied } from '#virtualapi/write/registry/managed-fields.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { requireName, requireNamespace } from './create.ts'
import { dropClusterAnnotations } from '#virtualapi/endpoints/call/cluster-annotations.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'

/** Applies a configuration to an object or to a part of it; a missing object is created. */
export async function applyObject(call: EndpointCall): Promise<ApiResponse> {
  const { definition, exchange, request, representation, dependencies, target, query } = call
  const { config, complaints } = readConfiguration(await exchange.request.body())
  if (exchange.recordsRequest) exchange.requested(encodeJson(config))
  if (exchange.view !== undefined && isJsonObject(config['metadata']))
    dropClusterAnnotations({ metadata: config['metadata'] })
  const { subresource, name } = request
  const { info, schema } = definition
  // Integer fields of built-in kinds are Go's integers: the numbers of the configuration are converted to them.
  if (info.builtIn && schema !== undefined && hasLargeNumber(config)) truncateIntegers(config, schema)
  const before = exchange.warnings.length
  const written = await dependencies.registry.update(target, name, {
    subresource,
    isPatch: true,
    keepsManagedFields: true,
    createMissing: true,
    change: async (current) => {
      if (current === undefined && subresource !== '') throw notFound(definition.info, name)
      // Drop the warnings of an earlier attempt: each warning is given once, for the last attempt.
      exchange.warnings.length = before
      const force = isTrue(query.get('force'))
      const { context, signal } = target
      const object = await dependencies.registry.forms.withVersions(
        { definition, context, subresource, signal },
        (managed) => applied(managed, cloneJson(config), current, { force }),
      )
      tellDuplicates(complaints, call)
      const { uid } = object.metadata
      if (uid && current === undefined)
        throw conflict(
          definition.info,
          name,
          `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
        )
      requireNamespace(object.metadata, request.namespace)
      requireName(object.metadata.name, name)
      return object
    },
  })
  const view = viewOf(definition, representation, { now: target.context.now })
  return jsonBytes(view.object(written.bytes), { status: written.created ? 201 : 200 })
}

interface Configuration {
  readonly config: JsonObject
  /** Messages about duplicate fields. */
  readonly complaints: readonly string[]
}

/** The body as a configuration. Throws 400 if it is not an object in YAML or JSON. */
export function readConfiguration(body: Uint8Array): Configuration {
  const { value, duplicates } = decoded(body)
  if (value !== null && !isJsonObject(value))
    throw badRequest(
      `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${goKind(value)} into Go value of type map[string]interface {}`,
    )
  return { config: value ?? {}, complaints: duplicates }
}

function decoded(body: Uint8Array): Decoded {
  try {
    return decodeBody(body, 'application/yaml')
  } catch (error) {
    if (!isStatusError(error, 'BadRequest')) throw error
    throw badRequest(`error decoding YAML: ${error.message}`, error)
  }
}

/** Warns of duplicate fields. Throws 400 if the request asks for strict validation. */
export function tellDuplicates(
  complaints: readonly string[],
  { exchange, fieldValidation }: { exchange: EndpointCall['exchange']; fieldValidation: FieldValidation },
): void {
  if (complaints.length === 0 || fieldValidation === 'Ignore') return
  const text = `error converting YAML to JSON: yaml: unmarshal errors:\n  ${complaints.join('\n  ')}`
  if (fieldValidation === 'Strict') throw badRequest(`error strict decoding YAML: ${text}`)
  exchange.warnings.push(text)
}
