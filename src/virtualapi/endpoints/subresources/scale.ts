// The scale subresource: reads and writes the replicas of any workload as autoscaling/v1 Scale.
import { Buffer } from 'node:buffer'
import { goPrint } from '#apimachinery/text/index.ts'
import {
  cloneJson,
  encodeJson,
  isJsonObject,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
} from '#apimachinery/meta/index.ts'
import { badRequest, methodNotAllowed, notFound } from '#apimachinery/status/index.ts'
import { jsonBytes, jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeBody, objectOf, withKind, type Decoded } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { applyScale, hasReplicas, scaleOf } from '#virtualapi/kinds/index.ts'
import { UndecodableError } from '#virtualapi/kinds/resources/typed/decode-errors.ts'
import { builtInResourceOfKind } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { appliedScale, managedFieldsOfScaled } from '#virtualapi/write/registry/scale-managed-fields.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { readConfiguration, tellDuplicates } from '#virtualapi/endpoints/verbs/apply.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType, requireName, requireNamespace } from '#virtualapi/endpoints/verbs/create.ts'
import { decodePatched, patchFunction } from '#virtualapi/endpoints/verbs/patch.ts'

const scales = { group: 'autoscaling', version: 'v1', kind: 'Scale' }

export async function scale(call: EndpointCall): Promise<ApiResponse> {
  requireSubresource(call)
  const { definition, dependencies, target, request, exchange } = call
  const { verb } = exchange.info
  if (verb === 'get')
    return shown(call, scaleOf(decodeObject(await dependencies.registry.read(target, request.name)), definition))
  if (verb !== 'update' && verb !== 'patch') throw methodNotAllowed(definition.info, verb)
  const rescale = await rescaling(call)
  const written = await dependencies.registry.update(target, request.name, {
    subresource: 'scale',
    keepsManagedFields: true,
    change: (current) => {
      if (current === undefined) throw notFound(definition.info, request.name)
      const { scale, managedFields } = rescale({
        current,
        scale: scaleOf(current, definition, { toWrite: true }),
      })
      requireReplicas(call, { current, scale })
      const next = applyScale(current, scale, definition)
      if (managedFields === undefined) delete next.metadata.managedFields
      else next.metadata.managedFields = managedFields
      return next
    },
  })
  return jsonDocument(scaleOf(written.object, definition))
}

/** As in kube-apiserver, a patch must set the replicas of a custom resource that has none. */
function requireReplicas(
  { definition, exchange }: EndpointCall,
  { current, scale }: { readonly current: KubeObject; readonly scale: KubeObject },
): void {
  const path = definition.custom?.scale?.specReplicasPath
  if (path === undefined || exchange.info.verb !== 'patch' || hasReplicas(current, definition)) return
  if (!isJsonObject(scale['spec']) || scale['spec']['replicas'] === undefined)
    throw badRequest(`the spec replicas field ${JSON.stringify(path)} cannot be empty`)
}

type Rescaling = (scaling: { readonly current: KubeObject; readonly scale: KubeObject }) => {
  scale: KubeObject
  managedFields: ManagedFieldsEntry[] | undefined
}

/**
 * Returns a function that changes the Scale of an object as the body of the request says, and finds the managed fields
 * of the object after that.
 */
async function rescaling(call: EndpointCall): Promise<Rescaling> {
  const { exchange, definition, patchType, query, request, target } = call
  const { context } = target
  if (patchType !== 'apply') {
    const wanted = await wantedScale(call)
    return ({ current, scale }) => {
      const next = wanted(scale)
      return { scale: next, managedFields: managedFieldsOfScaled({ definition, context }, { current, scale }, next) }
    }
  }
  const { config, complaints } = readConfiguration(await exchange.request.body())
  if (exchange.recordsRequest) exchange.requested(encodeJson(config))
  const force = isTrue(query.get('force'))
  return (scaling) => {
    const result = appliedScale({ definition, context }, scaling, cloneJson(config), { force })
    tellDuplicates(complaints, call)
    requireNamespace(result.scale.metadata, request.namespace)
    requireName(result.scale.metadata.name, request.name)
    return result
  }
}

/** A Scale as JSON, as its metadata alone, or as a Table with the columns of Scale. */
function shown({ definition, representation, query, target }: EndpointCall, scale: KubeObject): ApiResponse {
  const isTable = representation.as === 'Table' && definition.info.builtIn
  if (representation.as !== 'PartialObjectMetadata' && !isTable) return jsonDocument(scale)
  const { fromStorage: _stored, complete: _complete, ...rest } = definition
  const info = { ...definition.info, ...scales }
  const view = viewOf({ ...rest, info, storageApiVersion: 'autoscaling/v1' }, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return jsonBytes(view.object(Buffer.from(encodeJson(scale))))
}

/** The wanted Scale, as a function of the current one. */
async function wantedScale(call: EndpointCall): Promise<(current: KubeObject) => KubeObject> {
  const { exchange, definition, patchType } = call
  const body = await exchange.request.body()
  if (exchange.info.verb === 'patch') {
    const apply = patchFunction(patchType, { ...definition, schema: definition.schema ?? {} })
    const { value, duplicates } = decodeBody(body, undefined)
    if (exchange.recordsRequest) exchange.requested(encodeJson(value))
    const before = exchange.warnings.length
    return (current) => {
      // Drop the warnings of an earlier attempt that lost a conflict.
      exchange.warnings.length = before
      const patched = apply(current as unknown as JsonObject, value, call.target.context.work)
      if (!isJsonObject(patched)) throw badRequest('the body must be a Scale')
      const shown = patchType === 'strategic' ? goPrint(value) : undefined
      return decodePatched(patched, { definition: withKind(definition, scales), shown }, () =>
        requireScale(call, { value: patched, duplicates }, { duplicatesFirst: true }),
      )
    }
  }
  const scaled = requireScale(call, decodeBody(body, requireContentType(exchange.header('content-type'))))
  recordGiven(call, scaled)
  return () => scaled
}

function requireScale(
  { definition, exchange, fieldValidation, request }: EndpointCall,
  decoded: Decoded,
  { duplicatesFirst = false } = {},
): KubeObject {
  const { value } = decoded
  if (!isJsonObject(value)) throw badRequest('the body must be a Scale')
  const { kind = scales.kind, apiVersion = 'autoscaling/v1' } = value
  requireScaleKind({ kind, apiVersion } as KubeObject)
  const { warnings } = exchange
  const scaled = objectOf(decoded, {
    definition: withKind(definition, scales),
    fieldValidation,
    warnings,
    duplicatesFirst,
  })
  requireNamespace(scaled.metadata, request.namespace)
  requireName(scaled.metadata.name, request.name)
  return scaled
}

function requireScaleKind({ kind, apiVersion }: KubeObject): void {
  if (kind === 'Scale' && apiVersion === 'autoscaling/v1') return
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const isKnown = group === '' || builtInResourceOfKind({ group, version, kind }) !== undefined
  const why = isKnown
    ? `converting (${group === '' ? '' : version}.${kind}) to (autoscaling.Scale): unknown conversion`
    : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`
  throw new UndecodableError('other', why, {
    given: `${kind} in version ${JSON.stringify(version)}`,
    expected: 'Scale',
  })
}
