// Requests below /console/k8s as the stages get them, and the answers as browsers get them.
import { badRequest, pathNotFound } from '#apimachinery/status/index.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { inert, ownHeaders } from './page-files.ts'

const prefix = '/console/k8s'

/** The URL without the prefix; `*` as the logical cluster becomes `only` if that is given. Throws 404 for other paths. */
export function apiUrl(url: string, only: string | undefined): string {
  const inner = url.slice(prefix.length)
  if (!url.startsWith(prefix) || !inner.startsWith('/clusters/')) throw pathNotFound()
  const isAll = inner.startsWith('/clusters/*/') || inner === '/clusters/*' || inner.startsWith('/clusters/*?')
  return isAll && only !== undefined ? `/clusters/${only}${inner.slice('/clusters/*'.length)}` : inner
}

/** Headers of a browser's request that the stages get. The cookie and every other credential stay behind. */
const kept = new Set([
  ':method',
  ':path',
  ':authority',
  ':scheme',
  'host',
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'if-match',
  'if-none-match',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-forwarded-for',
  'x-real-ip',
])
/** Headers that name another identity. They are refused and not removed: a page that sends them has a fault. */
const identities = /^(impersonate-|x-remote-|x-kcp-hop-)/

/** The headers for the stages. Throws 400 for headers that name an identity. */
export function apiHeaders(rawHeaders: readonly string[], { isForwarded }: { isForwarded: boolean }): string[] {
  const headers: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']
    if (identities.test(name) && !(isForwarded && name.startsWith('x-kcp-hop-')))
      throw badRequest(`the console takes no header ${JSON.stringify(name)}: the identity is that of its session`)
    if (kept.has(name) || (name.startsWith('sec-websocket-') && name !== 'sec-websocket-origin'))
      headers.push(name, value)
  }
  return headers
}

/** Headers of an answer that browsers get. */
const shownHeaders =
  /^(content-(type|length|encoding|language)|etag|vary|warning|audit-id|retry-after|x-kubernetes-.*)$/
/** Types of content that browsers neither show as a page nor run. Everything else is bytes to them. */
const harmless =
  /^(application\/(json|yaml|vnd\.kubernetes\.protobuf|com\.github\.proto-openapi[^,]*|jwk-set\+json)|text\/plain)\s*(;|$)/i

/**
 * The answer for the browser: whatever a tenant, a member or an aggregated server wrote, it is data here, and neither a
 * page nor a script of the console's origin.
 */
export function harmlessAnswer<A extends ApiResponse>(answer: A, setCookie: string | undefined): A {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(answer.headers))
    if (shownHeaders.test(name.toLowerCase())) headers[name.toLowerCase()] = value
  const type = headers['content-type']
  if (type !== undefined && !harmless.test(type)) headers['content-type'] = 'application/octet-stream'
  return {
    ...answer,
    headers: {
      ...headers,
      ...ownHeaders,
      'content-security-policy': inert,
      'cache-control': headers['etag'] === undefined ? 'no-store' : 'no-cache, private',
      ...(setCookie !== undefined && { 'set-cookie': setCookie }),
    },
  }
}
