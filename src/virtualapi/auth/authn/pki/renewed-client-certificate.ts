// A client certificate of our own that never runs out while the process lives.
import type { Clock } from '#async/index.ts'
import type { KeyPair } from './certificate-authority.ts'
import { isRenewalDue } from './is-renewal-due.ts'
import type { ClientCertificateRequest, Pki } from './pki.ts'

/** Returns the current client certificate: the same at every call until its renewal is due, then a new one. */
export function renewedClientCertificate(
  pki: Pick<Pki, 'issueClientCertificate'>,
  request: ClientCertificateRequest,
  options: { readonly clock?: Clock } = {},
): () => Promise<KeyPair> {
  let current: KeyPair | undefined
  return async () => {
    if (current === undefined || isRenewalDue(current.certificate, options))
      current = await pki.issueClientCertificate(request)
    return current
  }
}
