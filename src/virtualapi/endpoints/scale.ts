// The scale subresource: a few numbers of a workload, in one form for all kinds.
import { Buffer } from 'node:buffer'
import { encodeJson, isJsonObject, type JsonObject, type KubeObject } from '../../apimachinery/meta/index.ts'
import { badRequest, methodNotAllowed } from '../../apimachinery/status/index.ts'
import { jsonBytes, jsonDocument } from '../codec/answers.ts'
import { decodeBody } from '../codec/read-object.ts'
import { viewOf } from '../codec/representations.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import { applyScale, scaleOf } from '../registry/strategies/index.ts'
import type { Answer } from '../server/exchange.ts'
import { requireSubresource, type Call } from './call.ts'
import { requireContentType, requireName, requireNamespace } from './create.ts'
import { patchOf } from './patch.ts'

export async function scale(call: Call): Promise<Answer> {
  requireSubresource(call)
  const { definition, parts, target, request, exchange } = call
  const { verb } = exchange.info
  if (verb === 'get')
    return shown(call, scaleOf(decodeObject(parts.registry.get(target, request.name).bytes), definition))
  if (verb !== 'update' && verb !== 'patch') throw methodNotAllowed(definition.info, verb)
  const wanted = await wantedScale(call)
  const written = await parts.registry.update(target, request.name, {
    subresource: 'scale',
    change: (current) => {
      if (current === undefined) throw badRequest('there is nothing to scale')
      return applyScale(current, wanted(scaleOf(current, definition, { toWrite: true })), definition)
    },
  })
  return jsonDocument(scaleOf(written.object, definition))
}

/** A Scale in the form asked for: kubectl shows it as a table with columns of its own. */
function shown({ definition, representation, query, target }: Call, scale: KubeObject): Answer {
  if (representation.as !== 'Table' || !definition.info.builtIn) return jsonDocument(scale)
  const { fromStorage: _stored, complete: _complete, ...rest } = definition
  const info = { ...definition.info, group: 'autoscaling', version: 'v1', kind: 'Scale' }
  const view = viewOf({ ...rest, info, storageApiVersion: 'autoscaling/v1' }, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return jsonBytes(view.object(Buffer.from(encodeJson(scale))))
}

/** The Scale asked for, as a function of the present one. */
async function wantedScale({ exchange, definition, request }: Call): Promise<(current: KubeObject) => KubeObject> {
  const body = await exchange.request.body()
  if (exchange.info.verb === 'patch') {
    const apply = patchOf(exchange.header('content-type'), { ...definition, schema: definition.schema ?? {} })
    const { value } = decodeBody(body, undefined)
    return (current) => requireScale(apply(current as unknown as JsonObject, value), request)
  }
  const { value } = decodeBody(body, requireContentType(exchange.header('content-type')))
  return () => requireScale(value, request)
}

function requireScale(value: unknown, { name, namespace }: { name: string; namespace: string }): KubeObject {
  if (!isJsonObject(value)) throw badRequest('the body must be a Scale')
  const { kind = 'Scale', apiVersion = 'autoscaling/v1', metadata } = value
  if (metadata !== undefined && metadata !== null && !isJsonObject(metadata))
    throw badRequest('metadata of a Scale must be an object')
  const scaled = { ...value, kind, apiVersion, metadata: metadata ?? {} } as unknown as KubeObject
  requireScaleKind(scaled)
  requireNamespace(scaled.metadata, namespace)
  requireName(scaled.metadata.name, name)
  return scaled
}

function requireScaleKind({ kind, apiVersion }: KubeObject): void {
  if (kind === 'Scale' && apiVersion === 'autoscaling/v1') return
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  throw badRequest(
    `${kind} in version "${version}" cannot be handled as a Scale: converting (${group === '' ? '' : version}.${kind}) to (autoscaling.Scale): unknown conversion`,
  )
}
