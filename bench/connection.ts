// The connection details of a kubeconfig, for clients that only open a socket.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

export interface Connection {
  readonly host: string
  readonly port: number
  /** The path prefix before `/api`: that of a logical cluster, or empty. */
  readonly base: string
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

interface Kubeconfig {
  clusters: [{ cluster: { server: string; 'certificate-authority-data': string } }]
  users: [{ user: { 'client-certificate-data': string; 'client-key-data': string } }]
}

/** Reads a kubeconfig with a client certificate, as written by `kcp kubeconfig` and for test clusters. */
export function connectionOf(kubeconfig: string): Connection {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const { server, 'certificate-authority-data': ca } = clusters[0].cluster
  const { 'client-certificate-data': cert, 'client-key-data': key } = users[0].user
  const { hostname, port, pathname } = new URL(server)
  const decode = (text: string): Buffer => Buffer.from(text, 'base64')
  return {
    host: hostname,
    port: Number(port === '' ? 443 : port),
    base: pathname === '/' ? '' : pathname,
    ca: decode(ca),
    cert: decode(cert),
    key: decode(key),
  }
}
