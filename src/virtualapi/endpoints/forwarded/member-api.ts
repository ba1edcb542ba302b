// Requests of clients to the API of a member, made as the ServiceAccount that its MemberCluster names in spec.access.
// Only permitted headers of a request reach the member, and only permitted headers of a response reach the client.
import {
  isStatusError,
  pathNotFound,
  serviceUnavailable,
  statusError,
  type StatusError,
} from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import type { TransportResponse } from '#client/index.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { forwardedHeaders } from '#virtualapi/outbound/members/forwarded.ts'
import type { MemberAccess } from '#virtualapi/outbound/members/member-access.ts'
import type { ApiResponse, Exchange, MemberUse } from '#virtualapi/request/exchange.ts'
import { shownHeaders, type Upgraded } from './proxy-exchange.ts'

/** How long a client may read nothing before its connection is cut, milliseconds. */
const maxStallMs = 60_000
/** Maximum bytes of the headers that are passed on, in either direction; most clients accept 16 KiB. */
const maxHeaderBytes = 8 * 1024
/** How often an open stream asks whether its user may go on, milliseconds. */
const askAgainMs = 5_000
/** The paths of a member that clients may request: its API, its OpenAPI documents, its version and its health. */
const served = /^\/(api|apis|openapi|version|healthz|livez|readyz)(\/|$)/

interface Asked {
  readonly use: MemberUse
  readonly access: MemberAccess
  /** Path and query at the member. */
  readonly url: string
}

/** Answers with the response of the member. */
export async function passToMember(exchange: Exchange, dependencies: EndpointDependencies): Promise<ApiResponse> {
  const { use, access, url } = asked(exchange, dependencies)
  const { method, rawHeaders } = exchange.request
  const body = await exchange.request.body()
  const signal = whileAllowed(exchange, use)
  const request = { method, url, rawHeaders, body, signal }
  const { status, headers, body: chunks } = await exchange.whileWaiting(access.request(use, request))
  const shown = shownHeaders(headers)
  if (sizeOf(shown) <= maxHeaderBytes) return { kind: 'stream', status, headers: shown, chunks, maxStallMs }
  await chunks[Symbol.asyncIterator]().return?.()
  throw serviceUnavailable(`member cluster "${use.name}" answered with more than ${maxHeaderBytes} bytes of headers`)
}

function sizeOf(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
}

/** Passes an upgrade on. Returns the stream to the member, or its refusal. */
export async function upgradeToMember(
  exchange: Exchange,
  dependencies: EndpointDependencies,
): Promise<{ upgraded: Upgraded } | { refused: TransportResponse }> {
  const { use, access, url } = asked(exchange, dependencies)
  const { method, rawHeaders } = exchange.request
  const signal = whileAllowed(exchange, use)
  const result = await access.upgrade(use, { method, url, rawHeaders, signal })
  return 'upgraded' in result
    ? result
    : { refused: { ...result.refused, headers: shownHeaders(result.refused.headers) } }
}

function asked({ request, info, member }: Exchange, { memberAccess }: EndpointDependencies): Asked {
  if (member === undefined || memberAccess === undefined) throw pathNotFound()
  const sent = request.url.startsWith('/') ? request.url : request.url.replace(/^https?:\/\/[^/?]*/i, '')
  const url = sent.slice(info.basePath.length)
  if (!served.test(url.split('?', 1)[0] ?? '')) throw pathNotFound()
  const kept = forwardedHeaders(request.rawHeaders, { upgrade: true })
  if (kept.join('').length > maxHeaderBytes)
    throw statusError(
      431,
      'RequestHeaderFieldsTooLarge',
      `the headers for a member are limited to ${maxHeaderBytes} bytes`,
    )
  return { use: member, access: memberAccess, url }
}

/** A signal that is aborted when the user may not go on: a revoked right ends open watches and streams, too. */
function whileAllowed(exchange: Exchange, { mayGoOn }: MemberUse): AbortSignal {
  const child = childSignal(exchange.signal)
  const { signal } = child
  const ask = async (): Promise<void> => {
    const mayStill = await mayGoOn(signal).catch((error: unknown) => {
      // A host that does not answer now has revoked nothing.
      if (isStatusError(error) && error.code >= 500) return true
      throw error
    })
    if (!mayStill) child.abort(revoked())
  }
  const timer = setInterval(() => void ask().catch(() => child.abort(revoked())), askAgainMs).unref()
  exchange.cleanups.push(() => {
    clearInterval(timer)
    child[Symbol.dispose]()
  })
  return signal
}

function revoked(): StatusError {
  return statusError(403, 'Forbidden', 'the right to use this member was revoked')
}
