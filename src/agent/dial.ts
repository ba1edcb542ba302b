// Connections from an agent to the installation, directly or through an HTTP proxy (CONNECT). The proxy is that of the
// environment variables HTTPS_PROXY and NO_PROXY.
import { Agent } from 'node:https'
import { connect, type Socket } from 'node:net'
import { getProxyForUrl } from 'proxy-from-env'
import { connectThroughProxy } from '#client/index.ts'

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
export async function dialInstallation({ url }: Pick<InstallationAddress, 'url'>): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port === '' ? 443 : port) }
  const proxyUrl = getProxyForUrl(url)
  return await (proxyUrl === '' ? dialDirectly(to) : connectThroughProxy({ ...to, proxyUrl, timeoutMs: connectMs }))
}

async function dialDirectly(to: { readonly host: string; readonly port: number }): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ ...to, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 })
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  const late = (): void => reject(new Error('the installation cannot be reached in time'))
  const timer = setTimeout(late, connectMs)
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}
