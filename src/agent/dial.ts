// Connections from an agent to the installation, directly or through an HTTP proxy (CONNECT).
import { Agent } from 'node:https'

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

/** The environment variables by which an HTTP proxy is chosen: HTTPS_PROXY and NO_PROXY. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>

/** An agent of node:https for connections to the installation; without `client`, no certificate is sent. */
export function connectionsTo(
  { ca }: Pick<InstallationAddress, 'ca'>,
  { client, env = process.env }: { readonly client?: ClientCertificate; readonly env?: ProxyEnvironment } = {},
): Agent {
  return new Agent({
    ca,
    ...(client && { cert: client.certificate, key: client.key }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    keepAlive: false,
    proxyEnv: env,
  })
}
