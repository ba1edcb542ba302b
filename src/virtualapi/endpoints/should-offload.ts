// Which requests the offload thread answers: those that would hold up everybody else (docs/design/0011).
import { alwaysLight, isLargeBody, isLargeJson } from '../codec/effort.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { EndpointCall } from './endpoint-call.ts'

const verbs = new Set(['get', 'create', 'update', 'patch', 'delete'])
/** What is about the object as a whole; other subresources are small, or speak to members. */
const subresources = new Set(['', 'status', 'scale', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

/** Whether a request brings much, or is about an object that holds much and must be looked into. Waits for a large body. */
export async function shouldOffload(call: EndpointCall): Promise<boolean> {
  const { exchange, objects, definition, request, representation } = call
  const { verb } = exchange.info
  if (!verbs.has(verb) || !subresources.has(request.subresource)) return false
  if (verb !== 'get' && (await bringsMuch(exchange))) return true
  const isCopied = verb === 'get' && representation.as === 'Object' && request.subresource !== 'scale'
  if (isCopied || verb === 'create') return false
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  return entry !== undefined && isLargeJson(entry.bytes)
}

/** A body of unknown length is waited for. */
async function bringsMuch(exchange: Exchange): Promise<boolean> {
  if (exchange.announcedBytes <= alwaysLight) return false
  return isLargeBody(await exchange.request.body(), exchange.header('content-type') ?? '')
}
