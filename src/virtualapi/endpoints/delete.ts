// DELETE of one object or of all that a selection names.
import { Buffer } from 'node:buffer'
import { isJsonObject, type JsonObject } from '../../apimachinery/meta/index.ts'
import { badRequest, isStatusError } from '../../apimachinery/status/index.ts'
import { jsonBytes, jsonDocument } from '../codec/answers.ts'
import { decodeBody } from '../codec/read-object.ts'
import { viewOf } from '../codec/representations.ts'
import type { DeleteOptions } from '../registry/registry.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { listMeta, paged } from './list.ts'
import { listPosition } from './read-position.ts'
import { selectionOf } from './selection.ts'

export async function deleteObject(call: Call): Promise<Answer> {
  const { definition, request, representation, parts, target } = call
  const options = await readDeleteOptions(call)
  const { deleted, object, bytes } = await parts.registry.delete(target, request.name, options)
  const { group, resource } = definition.info
  // Namespaces, pods and the like come back as they are while they end; what is gone is told by a Status.
  if (!deleted) return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(bytes))
  const { name, uid } = object.metadata
  const details = { name, ...(group === '' ? {} : { group }), kind: resource, uid }
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

/** Every object of the collection that matches is deleted; answers with the list of them. */
export async function deleteCollection(call: Call): Promise<Answer> {
  const { definition, request, query, parts, target, objects, representation } = call
  const options = await readDeleteOptions(call)
  const selection = selectionOf(query, definition)
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const position = listPosition(withoutTimeout(query))
  const page = paged(objects.list(scope), selection, position)
  for (const { key } of page.entries) {
    try {
      await parts.registry.delete({ ...target, namespace: key.namespace }, key.name, options)
    } catch (error) {
      if (!isStatusError(error, 'NotFound')) throw error
    }
  }
  const view = viewOf(definition, representation, { now: target.context.now })
  return jsonBytes(
    view.list(
      page.entries.map(({ bytes }) => bytes),
      listMeta(page, objects.revision(), selection),
    ),
  )
}

function withoutTimeout(query: URLSearchParams): URLSearchParams {
  const copy = new URLSearchParams(query)
  copy.delete('resourceVersion')
  copy.delete('resourceVersionMatch')
  return copy
}

/** DeleteOptions from the body where there is one, else from the query. Throws 400. */
async function readDeleteOptions({ exchange, query, target }: Call): Promise<DeleteOptions> {
  const body = await exchange.request.body()
  const given = body.length > 0 ? fromBody(body, exchange.header('content-type')) : fromQuery(query)
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = given
  if (Array.isArray(dryRun) && dryRun.includes('All')) Object.assign(target.context, { dryRun: true })
  const grace = integer(gracePeriodSeconds, 'gracePeriodSeconds')
  const policy =
    text(propagationPolicy, 'propagationPolicy') ??
    (typeof orphanDependents === 'boolean' ? (orphanDependents ? 'Orphan' : 'Background') : undefined)
  const { uid, resourceVersion } = isJsonObject(preconditions) ? preconditions : {}
  const options: { -readonly [K in keyof DeleteOptions]: DeleteOptions[K] } = {}
  if (grace !== undefined) options.gracePeriodSeconds = Math.max(0, grace)
  if (policy !== undefined) options.propagationPolicy = policy
  if (typeof uid === 'string') options.uid = uid
  if (typeof resourceVersion === 'string') options.resourceVersion = resourceVersion
  return options
}

function fromBody(body: Uint8Array, contentType: string | undefined): JsonObject {
  const { value } = decodeBody(Buffer.from(body), contentType)
  if (!isJsonObject(value)) throw badRequest('the body must be DeleteOptions')
  const { kind } = value
  if (typeof kind === 'string' && kind !== '' && kind !== 'DeleteOptions')
    throw badRequest(`the body must be DeleteOptions, not ${kind}`)
  return value
}

function fromQuery(query: URLSearchParams): JsonObject {
  const options: JsonObject = {}
  const grace = query.get('gracePeriodSeconds')
  if (grace !== null) options['gracePeriodSeconds'] = Number(grace)
  const policy = query.get('propagationPolicy')
  if (policy !== null) options['propagationPolicy'] = policy
  const orphan = query.get('orphanDependents')
  if (orphan !== null) options['orphanDependents'] = orphan === 'true' || orphan === '1'
  return options
}

function integer(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw badRequest(`${field} must be an integer, not ${JSON.stringify(value)}`)
}

function text(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw badRequest(`${field} must be a string, not ${JSON.stringify(value)}`)
}
