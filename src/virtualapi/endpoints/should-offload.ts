// Chooses the requests that the offload thread answers: requests that are too expensive for the main thread
// (docs/design/0011).
import { surveyJson } from '#apimachinery/json/index.ts'
import { alwaysLight, isLargeBody, isLargeGrowth, isLargeObject } from '#virtualapi/codec/effort.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import { defaultValuesOf } from '#virtualapi/kinds/resources/default-values.ts'
import type { EndpointCall } from './call/endpoint-call.ts'

const minYamlItemBytes = 4
const verbs = new Set(['get', 'create', 'update', 'patch', 'delete'])
/** Subresources that work on the whole object; others are small, or are answered by members. */
const subresources = new Set(['', 'status', 'scale', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

/** True for requests that the offload thread can answer. */
export function canOffload({
  exchange,
  request,
  target,
}: Pick<EndpointCall, 'exchange' | 'request' | 'target'>): boolean {
  if (exchange.view !== undefined && target.context.rule?.plain === undefined) return false
  return verbs.has(exchange.info.verb) && subresources.has(request.subresource)
}

/** True if the body or the object that must be decoded is large, or becomes large by defaults. May read the body. */
export function shouldOffload(call: EndpointCall): boolean | Promise<boolean> {
  const { exchange } = call
  const { verb } = exchange.info
  if (!canOffload(call)) return false
  if (verb === 'get' || (exchange.contentLength <= alwaysLight && !hasDefaults(call))) return isOfLarge(call)
  return isOrGrowsLarge(call)
}

async function isOrGrowsLarge(call: EndpointCall): Promise<boolean> {
  return (await hasLargeBody(call.exchange)) || (await growsLarge(call)) || isOfLarge(call)
}

/** True if a large object must be decoded. */
function isOfLarge({ exchange, objects, definition, request, representation }: EndpointCall): boolean {
  const { verb } = exchange.info
  const isCopied =
    verb === 'get' &&
    representation.as === 'Object' &&
    request.subresource !== 'scale' &&
    definition.conversion === undefined
  if (isCopied || verb === 'create') return false
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  return entry !== undefined && isLargeObject(entry.bytes)
}

/** Reads the body, unless its announced length is small. */
async function hasLargeBody(exchange: Exchange): Promise<boolean> {
  if (exchange.contentLength <= alwaysLight) return false
  return isLargeBody(await exchange.request.body(), exchange.header('content-type') ?? '')
}

/** True if the body may get values by the schema of a tenant. */
function hasDefaults({ exchange, definition: { info, schema } }: EndpointCall): boolean {
  return !info.builtIn && schema !== undefined && exchange.info.verb !== 'delete'
}

/** True if the defaults of a tenant's schema make a large object of this body. */
async function growsLarge(call: EndpointCall): Promise<boolean> {
  const { exchange, definition } = call
  const { schema } = definition
  if (schema === undefined || !hasDefaults(call)) return false
  const { toObject, toItem } = defaultValuesOf(schema)
  if (isLargeGrowth(toObject)) return true
  if (toItem === 0) return false
  const body = await exchange.request.body()
  // An item of a YAML list has no braces that could be counted: the size of the body bounds the number of items.
  const isYaml = exchange.header('content-type')?.includes('yaml') === true
  const items = isYaml ? body.length / minYamlItemBytes : surveyJson(body).opened
  return isLargeGrowth(toObject + items * toItem)
}
