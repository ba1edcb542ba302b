// Requests to an identity provider with node:https: the person's own authorities and headers, and the proxy of the
// environment variables.
import { Agent, request } from 'node:https'
import { getCACertificates } from 'node:tls'
import { getProxyForUrl } from 'proxy-from-env'
import { ExitError } from '#cli/process/exit-error.ts'

export interface ProviderConnection {
  /** PEM certificates; absent: the authorities that Node and the system know. */
  readonly authorities?: readonly string[]
  readonly insecureSkipTlsVerify?: boolean
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Options of a request, as oauth4webapi gives them. */
export interface FetchOptions {
  readonly body?: URLSearchParams | string | null | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly signal?: AbortSignal | undefined
}

export type ProviderFetch = (url: string, options?: FetchOptions) => Promise<Response>

const maxBytes = 1024 * 1024
const timeoutMs = 30_000

/** The provider did not answer: what is kept still counts. */
export class ProviderUnreachable extends ExitError {}

/** A fetch that follows no redirects. Rejects with ProviderUnreachable, or with the reason of `signal`. */
export function providerFetch(connection: ProviderConnection, signal: AbortSignal): ProviderFetch {
  const { authorities, insecureSkipTlsVerify, headers } = connection
  const ca = authorities ?? [...getCACertificates('default'), ...getCACertificates('system')]
  return async (url, options = {}) => {
    const proxy = getProxyForUrl(url)
    const agent = new Agent({
      ca: [...ca],
      rejectUnauthorized: insecureSkipTlsVerify !== true,
      ...(proxy !== '' && { proxyEnv: { HTTPS_PROXY: proxy } }),
    })
    const signals = [signal, AbortSignal.timeout(timeoutMs), ...(options.signal ? [options.signal] : [])]
    try {
      return await send(
        url,
        { ...options, headers: { ...options.headers, ...headers } },
        agent,
        AbortSignal.any(signals),
      )
    } catch (error) {
      signal.throwIfAborted()
      const { code = '', message } = error as NodeJS.ErrnoException
      const hint = /CERT|SIGNATURE|SIGNED/.test(code)
        ? '; --certificate-authority names the authority of its certificate'
        : ''
      throw new ProviderUnreachable(`cannot reach ${new URL(url).origin}: ${message || code}${hint}`, { cause: error })
    } finally {
      agent.destroy()
    }
  }
}

async function send(url: string, options: FetchOptions, agent: Agent, signal: AbortSignal): Promise<Response> {
  const { method = 'GET', headers, body } = options
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const content = body === undefined || body === null ? undefined : Buffer.from(body.toString())
  const length = content === undefined ? {} : { 'content-length': content.length }
  const outgoing = request(url, { method, agent, signal, headers: { ...headers, ...length } }, (response) => {
    const parts: Buffer[] = []
    let size = 0
    response.on('data', (part: Buffer) => {
      size += part.length
      if (size > maxBytes) response.destroy(new Error('the answer is larger than a MiB'))
      else parts.push(part)
    })
    response.on('error', reject)
    response.on('end', () => {
      const status = response.statusCode ?? 0
      const known = Object.entries(response.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map((value): [string, string] => [name, value]),
      )
      const isEmpty = [101, 204, 205, 304].includes(status)
      resolve(new Response(isEmpty ? null : Buffer.concat(parts), { status, headers: known }))
    })
  })
  outgoing.on('error', reject)
  outgoing.end(content)
  return await promise
}
