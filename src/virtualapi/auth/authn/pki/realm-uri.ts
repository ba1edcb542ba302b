// The realm of a client certificate: where the certificate is valid, as a URI among its subject alternative names. The
// signer sets it, so a certificate issued in one logical cluster is not valid in another.
import { tryClusterId, type ClusterId } from '#apimachinery/meta/index.ts'

export type CertificateRealm = ClusterId | 'installation'

/** The URI of a realm: `kcp://clusters/ID` or `kcp://installation`. */
export function realmUri(realm: CertificateRealm): string {
  return realm === 'installation' ? 'kcp://installation' : `kcp://clusters/${realm}`
}

/** The realm of a URI; undefined for any other URI. */
export function tryRealm(uri: string): CertificateRealm | undefined {
  if (uri === 'kcp://installation') return 'installation'
  const prefix = 'kcp://clusters/'
  return uri.startsWith(prefix) ? tryClusterId(uri.slice(prefix.length)) : undefined
}
