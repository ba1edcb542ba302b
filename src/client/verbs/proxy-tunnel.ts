// Connections through an HTTP proxy: the proxy opens the connection on CONNECT, and cannot read what TLS carries in it.
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'

export interface ProxiedTarget {
  /** `http://` or `https://`, with user and password if the proxy asks for them. */
  readonly proxyUrl: string
  /** The server behind the proxy. */
  readonly host: string
  readonly port: string | number
  /** Time limit in milliseconds until the connection is open. */
  readonly timeoutMs: number
}

export interface TunnelOptions extends ProxiedTarget {
  readonly tls: ConnectionOptions
}

/** A plain connection to the server. Rejects with the refusal of the proxy, or when the time is over. */
export function connectThroughProxy({ proxyUrl, host, port, timeoutMs }: ProxiedTarget): Promise<Socket> {
  const proxy = new URL(proxyUrl)
  const target = targetOf(host, port)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const fail = (why: string): void => reject(new Error(`the proxy ${proxy.host} ${why}`))
  const asked = (proxy.protocol === 'https:' ? https : http).request({
    host: withoutBrackets(proxy.hostname),
    ...(proxy.port !== '' && { port: proxy.port }),
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...authorizationOf(proxy) },
    agent: false,
  })
  const timer = setTimeout(() => {
    fail('gave no connection in time')
    asked.destroy()
  }, timeoutMs)
  asked.once('error', (error: Error) => fail(`cannot be used: ${error.message}`))
  // Only a refusal comes as an ordinary response.
  asked.once('response', (response) => {
    fail(`refused the connection to ${target}: ${response.statusCode ?? 0}`)
    response.destroy()
  })
  asked.once('connect', ({ statusCode = 0 }, socket: Socket) => {
    if (statusCode === 200) {
      resolve(socket)
      return
    }
    fail(`refused the connection to ${target}: ${statusCode}`)
    socket.destroy()
  })
  asked.end()
  return promise.finally(() => clearTimeout(timer))
}

/** Calls back once, with a socket whose TLS handshake is done, or with the error. */
export function openTunnel(options: TunnelOptions, done: (error: Error | null, socket?: Socket) => void): void {
  secured(options).then(
    (socket) => done(null, socket),
    (error: unknown) => done(error as Error),
  )
}

async function secured({ tls, ...options }: TunnelOptions): Promise<Socket> {
  const { host, port, timeoutMs, proxyUrl } = options
  const began = performance.now()
  const socket = await connectThroughProxy(options)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const name = tls.servername === undefined && !isAddress(host) ? { servername: host } : {}
  const secure = connect({ ...tls, socket, ...name, host })
  secure.once('error', reject)
  secure.once('secureConnect', () => resolve(secure))
  secure.once('close', () =>
    reject(new Error(`the connection to ${targetOf(host, port)} was closed before it was secure`)),
  )
  const late = (): void => reject(new Error(`the proxy ${new URL(proxyUrl).host} gave no connection in time`))
  const timer = setTimeout(late, Math.max(0, timeoutMs - (performance.now() - began)))
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function targetOf(host: string, port: string | number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function authorizationOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

/** A name for SNI must not be an address. */
function isAddress(host: string): boolean {
  return host.includes(':') || /^[0-9.]+$/.test(host)
}
