// Connections from an agent to the installation, directly or through an HTTP proxy (CONNECT). The proxy is that of the
// environment variables HTTPS_PROXY and NO_PROXY.
import { request as requestHttp } from 'node:http'
import { Agent, request as requestHttps } from 'node:https'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getProxyForUrl } from 'proxy-from-env'

/** How an agent reaches the installation. */
export interface InstallationAddress {
  /** `https://HOST:PORT`. */
  readonly url: string
  /** The authority of the server's certificate, PEM. */
  readonly ca: string
}

/** A client certificate with its key, PEM. */
export interface ClientCertificate {
  readonly certificate: string
  readonly key: string
}

const connectMs = 15_000

/** An agent of node:https for connections to the installation; without `client`, no certificate is sent. */
export function connectionsTo({ url, ca }: InstallationAddress, client?: ClientCertificate): Agent {
  const proxy = getProxyForUrl(url)
  return new Agent({
    ca,
    ...(client && { cert: client.certificate, key: client.key }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    keepAlive: false,
    ...(proxy !== '' && { proxyEnv: { HTTPS_PROXY: proxy } }),
  })
}

/**
 * A plain connection to the installation, in which the caller's client speaks TLS. Rejects if it is not open within 15
 * seconds.
 */
export async function dialInstallation({ url }: Pick<InstallationAddress, 'url'>): Promise<Duplex> {
  const { hostname, port } = new URL(url)
  const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port === '' ? 443 : port) }
  const proxy = getProxyForUrl(url)
  return await (proxy === '' ? dialDirectly(to) : dialThrough(new URL(proxy), to))
}

interface Target {
  readonly host: string
  readonly port: number
}

async function dialDirectly(to: Target): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ ...to, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 })
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  return await inTime(promise, () => socket.destroy())
}

async function dialThrough(proxy: URL, { host, port }: Target): Promise<Duplex> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const { username, password } = proxy
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const sent = (proxy.protocol === 'https:' ? requestHttps : requestHttp)({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    ...(proxy.port !== '' && { port: proxy.port }),
    method: 'CONNECT',
    path: target,
    headers: {
      host: target,
      ...(username !== '' && { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }),
    },
    agent: false,
  })
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const refuse = (status = 0): void => reject(new Error(`the proxy ${proxy.host} refused the connection: ${status}`))
  sent.once('error', reject)
  sent.once('response', ({ statusCode }) => refuse(statusCode))
  sent.once('connect', ({ statusCode }, socket) => {
    if (statusCode === 200) resolve(socket)
    else refuse(statusCode)
  })
  sent.end()
  return await inTime(promise, () => sent.destroy())
}

/** Gives up if the promise rejects, or does not resolve in time. */
async function inTime<T>(promise: Promise<T>, giveUp: () => void): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('the installation cannot be reached in time')), connectMs)
  try {
    return await Promise.race([promise, late])
  } catch (error) {
    giveUp()
    throw error
  } finally {
    clearTimeout(timer)
  }
}
