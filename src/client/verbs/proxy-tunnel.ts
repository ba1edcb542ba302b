// A TLS connection through an HTTP proxy: the proxy opens the connection on CONNECT, and cannot read our requests.
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'

export interface TunnelOptions {
  /** `http://` or `https://`, with user and password if the proxy asks for them. */
  readonly proxyUrl: string
  /** The server behind the proxy. */
  readonly host: string
  readonly port: string | number
  readonly tls: ConnectionOptions
  /** Time limit in milliseconds until TLS is established. */
  readonly timeoutMs: number
}

/** Calls back once, with a socket whose TLS handshake is done, or with the error. */
export function openTunnel(
  { proxyUrl, host, port, tls, timeoutMs }: TunnelOptions,
  done: (error: Error | null, socket?: Socket) => void,
): void {
  const proxy = new URL(proxyUrl)
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  let settled = false
  const settle = (error: Error | null, socket?: Socket): void => {
    if (settled) return
    settled = true
    clearTimeout(timer)
    done(error, socket)
  }
  const fail = (why: string): void => settle(new Error(`the proxy ${proxy.host} ${why}`))
  const asked = (proxy.protocol === 'https:' ? https : http).request({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    ...(proxy.port !== '' && { port: proxy.port }),
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...authorizationOf(proxy) },
    agent: false,
  })
  let open: Socket | undefined
  const timer = setTimeout(() => {
    fail('gave no connection in time')
    asked.destroy()
    open?.destroy()
  }, timeoutMs)
  asked.once('error', (error: Error) => fail(`cannot be used: ${error.message}`))
  // Only a refusal comes as an ordinary response.
  asked.once('response', (response) => {
    fail(`refused the connection to ${target}: ${response.statusCode ?? 0}`)
    response.destroy()
  })
  asked.once('connect', ({ statusCode = 0 }, socket) => {
    open = socket
    if (statusCode !== 200) {
      fail(`refused the connection to ${target}: ${statusCode}`)
      socket.destroy()
      return
    }
    const secure = connect({
      ...tls,
      socket,
      ...(tls.servername === undefined && !isAddress(host) && { servername: host }),
      host,
    })
    secure.once('error', (error: Error) => settle(error))
    secure.once('secureConnect', () => settle(null, secure))
    secure.once('close', () => settle(new Error(`the connection to ${target} was closed before it was secure`)))
  })
  asked.end()
}

function authorizationOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

/** A name for SNI must not be an address. */
function isAddress(host: string): boolean {
  return host.includes(':') || /^[0-9.]+$/.test(host)
}
