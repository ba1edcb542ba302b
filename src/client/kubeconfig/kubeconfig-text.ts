// Kubeconfig files as text, for kubectl and everything that reads them.
import { stringify } from 'yaml'

/** PEM client certificate and its key, or a bearer token. */
export type KubeconfigCredentials = { readonly cert: string; readonly key: string } | { readonly token: string }

export type KubeconfigContent = KubeconfigCredentials & {
  /** Name of the context and of its cluster; the user is `NAME-admin`. */
  readonly name: string
  /** URL, including the logical cluster's path. */
  readonly server: string
  /** PEM certificate of the authority that signed the server's certificate. */
  readonly ca: string
}

/** A kubeconfig with one context, which is current. Certificates, keys and tokens are embedded: no file paths. */
export function kubeconfigText(content: KubeconfigContent): string {
  const { name, server, ca } = content
  const user = `${name}-admin`
  const credentials =
    'token' in content
      ? { token: content.token }
      : { 'client-certificate-data': base64(content.cert), 'client-key-data': base64(content.key) }
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
      users: [{ name: user, user: credentials }],
      contexts: [{ name, context: { cluster: name, user } }],
      'current-context': name,
    },
    { lineWidth: 0 },
  )
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
