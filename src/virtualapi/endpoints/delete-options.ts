// How something is to be deleted. What is given and not understood is refused: a precondition that is overlooked deletes the
// wrong object.
import { Buffer } from 'node:buffer'
import { isJsonObject, type JsonObject, type JsonValue } from '../../apimachinery/meta/index.ts'
import { badRequest, invalid } from '../../apimachinery/status/index.ts'
import { decodeBody } from '../codec/read-object.ts'
import type { DeleteOptions, Target } from '../registry/registry.ts'
import type { Call } from './call.ts'

const policies = ['Background', 'Foreground', 'Orphan']

/** DeleteOptions from the body where there is one, else from the query. Throws 400 and 422. */
export async function readDeleteOptions({ exchange, query, target }: Call): Promise<DeleteOptions> {
  const body = await exchange.request.body()
  return deleteOptionsOf(body.length > 0 ? fromBody(body, exchange.header('content-type')) : fromQuery(query), target)
}

/** The same of options as they stand in a body. A dry run counts for all that is done to the target. Throws 400 and 422. */
export function deleteOptionsOf(given: JsonObject, target: Target): DeleteOptions {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = given
  if (isDryRun(dryRun)) Object.assign(target.context, { dryRun: true })
  const grace = integer(gracePeriodSeconds, 'gracePeriodSeconds')
  const orphan = boolean(orphanDependents, 'orphanDependents')
  const policy =
    oneOf(policies, text(propagationPolicy, 'propagationPolicy'), 'propagationPolicy') ??
    (orphan === undefined ? undefined : orphan ? 'Orphan' : 'Background')
  const { uid, resourceVersion } = object(preconditions, 'preconditions')
  const expectedUid = text(uid, 'preconditions.uid')
  const expectedVersion = text(resourceVersion, 'preconditions.resourceVersion')
  return {
    ...(grace === undefined ? {} : { gracePeriodSeconds: Math.max(0, grace) }),
    ...(policy === undefined ? {} : { propagationPolicy: policy }),
    ...(expectedUid === undefined ? {} : { uid: expectedUid }),
    ...(expectedVersion === undefined ? {} : { resourceVersion: expectedVersion }),
  }
}

function isDryRun(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return false
  if (!Array.isArray(value)) throw badRequest(`dryRun must be a list, not ${JSON.stringify(value)}`)
  for (const word of value) oneOf(['All'], text(word, 'dryRun'), 'dryRun')
  return value.length > 0
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

function boolean(value: JsonValue | undefined, field: string): boolean | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'boolean') return value
  throw badRequest(`${field} must be a boolean, not ${JSON.stringify(value)}`)
}

function object(value: JsonValue | undefined, field: string): JsonObject {
  if (value === undefined || value === null) return {}
  if (isJsonObject(value)) return value
  throw badRequest(`${field} must be an object, not ${JSON.stringify(value)}`)
}

function oneOf(words: readonly string[], value: string | undefined, field: string): string | undefined {
  if (value === undefined || words.includes(value)) return value
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${words.map((word) => `"${word}"`).join(', ')}`
  throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', [
    { reason: 'FieldValueNotSupported', message, field },
  ])
}
