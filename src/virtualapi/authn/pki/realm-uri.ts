// Certificates carry where they mean anything, as a URI among their subject alternative names: set by the signer, so that
// whoever asks for a certificate in one logical cluster is nobody in another.
import { tryClusterId, type ClusterId } from '../../../apimachinery/meta/index.ts'

export type CertificateRealm = ClusterId | 'installation'

/** `kcp://clusters/ID`, or `kcp://installation`. */
export function realmUri(realm: CertificateRealm): string {
  return realm === 'installation' ? 'kcp://installation' : `kcp://clusters/${realm}`
}

/** The realm that a URI names, or undefined for any other URI. */
export function tryRealm(uri: string): CertificateRealm | undefined {
  if (uri === 'kcp://installation') return 'installation'
  const prefix = 'kcp://clusters/'
  return uri.startsWith(prefix) ? tryClusterId(uri.slice(prefix.length)) : undefined
}
