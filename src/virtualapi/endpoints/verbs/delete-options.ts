// DeleteOptions of a request. Values of a wrong type are refused, because ignoring a precondition could delete the
// wrong object.
import { Buffer } from 'node:buffer'
import { fieldInvalid, fieldNotSupported } from '#apimachinery/field/index.ts'
import {
  encodeJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  isExactInteger,
  type Int64,
} from '#apimachinery/meta/index.ts'
import { badRequest, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import { decodeBody } from '#virtualapi/codec/read-object.ts'
import type { DeleteOptions } from '#virtualapi/write/registry/deletion.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { int64Of } from './list-options.ts'
import { dryRunCauses } from '#virtualapi/endpoints/call/write-options.ts'

const policies = ['Foreground', 'Background', 'Orphan']

/** The DeleteOptions in the body, or in the query if there is no body. Rejects with 400 and 422. */
export async function readDeleteOptions({ exchange, query, target }: EndpointCall): Promise<DeleteOptions> {
  const body = await exchange.request.body()
  const given = body.length > 0 ? fromBody(body, exchange.header('content-type')) : fromQuery(query)
  // The version that kube-apiserver records of all options.
  if (body.length > 0 && exchange.recordsRequest)
    exchange.requested(encodeJson({ ...given, kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/__internal' }))
  // `dryRun` of the query counts even if there is a body: ignoring it would delete for real.
  const asked = query.getAll('dryRun')
  const { dryRun = [] } = given
  const both = asked.length > 0 && Array.isArray(dryRun) ? { ...given, dryRun: [...dryRun, ...asked] } : given
  const options = deleteOptionsOf(both, target)
  Object.assign(target.context, { options: shownOptions(both) })
  return options
}

/** The options as webhooks see them. */
function shownOptions({
  gracePeriodSeconds,
  preconditions,
  orphanDependents,
  propagationPolicy,
  dryRun,
}: JsonObject): JsonObject {
  const given = {
    gracePeriodSeconds,
    preconditions: isJsonObject(preconditions) && Object.keys(preconditions).length > 0 ? preconditions : undefined,
    orphanDependents,
    propagationPolicy,
    dryRun: Array.isArray(dryRun) && dryRun.length > 0 ? dryRun : undefined,
  }
  const present = Object.entries(given).filter((member): member is [string, JsonValue] => member[1] != null)
  return { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1', ...Object.fromEntries(present) }
}

/** Validates DeleteOptions as they stand in a body, and sets `dryRun` of the target's context. Throws 400 and 422. */
export function deleteOptionsOf(given: JsonObject, target: RegistryTarget): DeleteOptions {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = given
  const orphan = boolean(orphanDependents, 'orphanDependents')
  const policy = text(propagationPolicy, 'propagationPolicy')
  const asked = dryRunValues(dryRun)
  const causes = [...policyCauses(policy, orphan), ...dryRunCauses(asked)]
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes)
  if (asked.length > 0) Object.assign(target.context, { dryRun: true })
  const grace = integer(gracePeriodSeconds, 'gracePeriodSeconds')
  const propagation = policy ?? (orphan === undefined ? undefined : orphan ? 'Orphan' : 'Background')
  const { uid, resourceVersion } = object(preconditions, 'preconditions')
  const expectedUid = text(uid, 'preconditions.uid')
  const expectedVersion = text(resourceVersion, 'preconditions.resourceVersion')
  return {
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(propagation === undefined ? {} : { propagationPolicy: propagation }),
    ...(expectedUid === undefined ? {} : { uid: expectedUid }),
    ...(expectedVersion === undefined ? {} : { resourceVersion: expectedVersion }),
  }
}

function policyCauses(policy: string | undefined, orphan: boolean | undefined): StatusCause[] {
  if (policy === undefined) return []
  const field = 'propagationPolicy'
  const both = fieldInvalid(field, policy, 'orphanDependents and deletionPropagation cannot be both set')
  return [
    ...(orphan === undefined ? [] : [both]),
    ...(policies.includes(policy) ? [] : [fieldNotSupported(field, policy, [...policies, 'nil'])]),
  ]
}

function dryRunValues(value: JsonValue | undefined): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw badRequest(`dryRun must be a list, not ${JSON.stringify(value)}`)
  return value.map((word) => text(word, 'dryRun') ?? '')
}

function fromBody(body: Uint8Array, contentType: string | undefined): JsonObject {
  const { value } = decodeBody(Buffer.from(body), contentType)
  if (value === null) return {}
  if (!isJsonObject(value)) throw badRequest('the body must be DeleteOptions')
  const { kind } = value
  if (typeof kind === 'string' && kind !== '' && kind !== 'DeleteOptions')
    throw badRequest(`the body must be DeleteOptions, not ${kind}`)
  return value
}

function fromQuery(query: URLSearchParams): JsonObject {
  const options: JsonObject = {}
  if (query.has('gracePeriodSeconds')) options['gracePeriodSeconds'] = int64Of(query, 'gracePeriodSeconds')
  const policy = query.get('propagationPolicy')
  if (policy !== null) options['propagationPolicy'] = policy
  const orphan = query.get('orphanDependents')
  if (orphan !== null) options['orphanDependents'] = isTrue(orphan)
  const preconditions: JsonObject = {}
  for (const member of ['uid', 'resourceVersion']) {
    const value = query.get(member) ?? ''
    if (value !== '') preconditions[member] = value
  }
  options['preconditions'] = preconditions
  return options
}

function integer(value: unknown, field: string): Int64 | undefined {
  if (value === undefined || value === null) return undefined
  if (isExactInteger(value)) return value
  throw badRequest(`${field} must be an integer, not ${JSON.stringify(value)}`)
}

function text(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined
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
