// The listener of this machine to which the provider sends the browser after signing in (RFC 8252, section 7.3).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { ExitError } from '#cli/process/exit-error.ts'

export interface LoopbackOptions {
  /** Tried in this order; port 0: any free one. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  /** Certificate and key, PEM: the listener speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Path of the redirect URI; default `/`. */
  readonly path?: string
}

/** The answer of the provider, by the browser. */
export interface Callback {
  readonly parameters: URLSearchParams
  /** Shows a page, or leads elsewhere. */
  respond(page: { readonly status: number; readonly text: string } | { readonly location: string }): void
}

export class Loopback implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  readonly #path: string
  readonly #scheme: string
  /** Only the person who signs in gets it: another user of this machine could sign in here in another name. */
  readonly #startPath = `/start-${randomBytes(16).toString('base64url')}`
  #waiting: { readonly url: URL; readonly state: string; readonly done: (callback: Callback) => void } | undefined

  private constructor(server: Server, { tls, path = '/' }: LoopbackOptions) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    this.#path = path
    this.#scheme = tls === undefined ? 'http' : 'https'
    server.on('request', (request, response) => this.#answer(request, response))
  }

  /** Listens at the first address that is free. Rejects with ExitError if none is. */
  static async listen(options: LoopbackOptions): Promise<Loopback> {
    const reasons: string[] = []
    for (const { host, port } of options.addresses) {
      const server = options.tls === undefined ? createServer() : createTlsServer(options.tls)
      server.headersTimeout = 10_000
      try {
        server.listen(port, host)
        await once(server, 'listening')
        return new Loopback(server, options)
      } catch (error) {
        reasons.push((error as Error).message)
      }
    }
    throw new ExitError(`cannot listen for the browser: ${reasons.join('; ')}; --listen-address names other addresses`)
  }

  /** `http://HOST:PORT`. */
  origin(host: string): string {
    return `${this.#scheme}://${host}:${this.port}`
  }

  /** The page that leads to `url`, for a browser of this machine. */
  startUrl(host: string): string {
    return this.origin(host) + this.#startPath
  }

  /** The answer with this state. Others are refused, and do not end the waiting. */
  async callback(url: URL, state: string, signal: AbortSignal): Promise<Callback> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Callback>()
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    this.#waiting = { url, state, done: resolve }
    try {
      return await promise
    } finally {
      this.#waiting = undefined
      signal.removeEventListener('abort', abort)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeIdleConnections()
    // A browser keeps its connection; the page has been sent.
    const timer = setTimeout(() => this.#server.closeAllConnections(), 500)
    if (this.#server.listening) await once(this.#server, 'close')
    clearTimeout(timer)
  }

  #answer({ method, url: target = '/' }: IncomingMessage, response: ServerResponse): void {
    const waiting = this.#waiting
    const url = URL.canParse(target, 'http://localhost') ? new URL(target, 'http://localhost') : undefined
    const { pathname, searchParams } = url ?? new URL('http://localhost/none')
    if (method !== 'GET' || waiting === undefined) {
      page(response, 404, 'Nothing to see here.')
      return
    }
    if (pathname === this.#startPath) {
      redirect(response, waiting.url.href)
      return
    }
    const isAnswer = pathname === this.#path && (searchParams.has('code') || searchParams.has('error'))
    if (!isAnswer) {
      page(response, 404, 'Nothing to see here.')
      return
    }
    if (!isSame(searchParams.get('state') ?? '', waiting.state)) {
      page(response, 400, 'This page belongs to another sign-in. Go back to the terminal, and open its link.')
      return
    }
    // Once: a browser that reloads the page must not begin again.
    this.#waiting = undefined
    waiting.done({
      parameters: searchParams,
      respond: (answer) =>
        'location' in answer ? redirect(response, answer.location) : page(response, answer.status, answer.text),
    })
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' }

function page(response: ServerResponse, status: number, text: string): void {
  const escaped = text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
  response.writeHead(status, {
    ...headers,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
  })
  response.end(`<!doctype html><title>kcp login</title><p>${escaped}</p>\n`)
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(302, { ...headers, location })
  response.end()
}
