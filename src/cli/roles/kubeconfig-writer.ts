// Kubeconfig files as text, for kubectl and everything that reads them.
import { stringify } from 'yaml'

export interface KubeconfigContent {
  /** Name of the context and of its cluster; the user is `NAME-admin`. */
  readonly name: string
  /** URL, including the logical cluster's path. */
  readonly server: string
  /** PEM certificate of the authority that signed the server's certificate. */
  readonly ca: string
  /** PEM client certificate and its key. */
  readonly cert: string
  readonly key: string
}

/** A kubeconfig with one context, which is current. Certificates and keys are embedded: no file paths. */
export function kubeconfigText({ name, server, ca, cert, key }: KubeconfigContent): string {
  const user = `${name}-admin`
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
      users: [{ name: user, user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } }],
      contexts: [{ name, context: { cluster: name, user } }],
      'current-context': name,
    },
    { lineWidth: 0 },
  )
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
