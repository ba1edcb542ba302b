// Which requests the offload thread answers: those too expensive for the main thread (docs/design/0011).
import { alwaysLight, isLargeBody, isLargeJson } from '../codec/effort.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { EndpointCall } from './endpoint-call.ts'

const verbs = new Set(['get', 'create', 'update', 'patch', 'delete'])
/** Subresources that work on the whole object; others are small, or are answered by members. */
const subresources = new Set(['', 'status', 'scale', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

/** True if the body, or the object that must be decoded, is large. Reads a large body. */
export async function shouldOffload(call: EndpointCall): Promise<boolean> {
  const { exchange, objects, definition, request, representation } = call
  const { verb } = exchange.info
  if (!verbs.has(verb) || !subresources.has(request.subresource)) return false
  if (verb !== 'get' && (await hasLargeBody(exchange))) return true
  const isCopied = verb === 'get' && representation.as === 'Object' && request.subresource !== 'scale'
  if (isCopied || verb === 'create') return false
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  return entry !== undefined && isLargeJson(entry.bytes)
}

/** Reads the body, unless its announced length is small. */
async function hasLargeBody(exchange: Exchange): Promise<boolean> {
  if (exchange.contentLength <= alwaysLight) return false
  return isLargeBody(await exchange.request.body(), exchange.header('content-type') ?? '')
}
