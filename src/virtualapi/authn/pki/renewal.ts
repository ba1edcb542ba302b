// Certificates are replaced long before they expire, while the old ones still hold: whoever fails to renew one has a third of
// its validity to try again.
import { X509Certificate } from 'node:crypto'
import { systemClock, type Clock } from '../../../async/index.ts'
import type { KeyPair } from './certificate-authority.ts'
import type { ClientCertificateRequest, Pki } from './pki.ts'

/** True once two thirds of the validity of this certificate (PEM) are over, and before it begins. */
export function isRenewalDue(certificate: string, { clock = systemClock }: { clock?: Clock } = {}): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  const [from, to, now] = [validFromDate.getTime(), validToDate.getTime(), clock.now()]
  return now < from || now >= from + ((to - from) * 2) / 3
}

/** The client certificate that holds now: the same at every call until its renewal is due, then a new one. */
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
