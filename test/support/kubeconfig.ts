// Kubeconfig files for the clusters that tests boot.

import { writeFileSync } from 'node:fs'
import { type KeyPair } from './certificates.ts'

export interface KubeconfigSpec {
  /** Name of cluster, user and context. */
  name: string
  server: string
  /** PEM. */
  ca: string
  client: KeyPair | { token: string }
  namespace?: string
}

/** Writes a kubeconfig (JSON, which is YAML) readable by its owner only. */
export function writeKubeconfig(file: string, { name, server, ca, client, namespace }: KubeconfigSpec): void {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const user =
    'token' in client
      ? { token: client.token }
      : { 'client-certificate-data': base64(client.certificate), 'client-key-data': base64(client.key) }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...(namespace === undefined ? {} : { namespace }) } }],
  }
  writeFileSync(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
}
