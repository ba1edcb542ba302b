// The identity of this gateway: its certificate and key, from the Secret in the member.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { KubeObject } from '#apimachinery/meta/index.ts'

export interface Identity {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** SHA-256 fingerprint of the certificate. */
  readonly fingerprint: string
  /** The TLS context of connections that this gateway opens. */
  readonly context: SecureContext
}

/** The identity in a Secret. Throws if the certificate or the key is missing, or if they do not match. */
export function parseIdentity(secret: KubeObject): Identity {
  const data = (secret['data'] ?? {}) as Readonly<Record<string, string | undefined>>
  const [cert, key] = ['tls.crt', 'tls.key'].map((name) => Buffer.from(data[name] ?? '', 'base64').toString())
  if (!cert || !key) throw new Error('the Secret lacks tls.crt or tls.key')
  const certificate = new X509Certificate(cert)
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('tls.key of the Secret is not the key of tls.crt')
  const { fingerprint256: fingerprint } = certificate
  return { cert, key, fingerprint, context: createSecureContext({ cert, key, minVersion: 'TLSv1.3' }) }
}
