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

const agentPrefix = 'kcp://agents/'

/** The URI of the agent of a member: `kcp://agents/UID`, the uid of its MemberCluster. It is no realm. */
export function agentUri(uid: string): string {
  return `${agentPrefix}${uid}`
}

/** The uid in the URI of an agent; undefined for any other URI. */
export function tryAgentUid(uri: string): string | undefined {
  const uid = uri.startsWith(agentPrefix) ? uri.slice(agentPrefix.length) : ''
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid) ? uid : undefined
}

/** Whether a certificate with this URI is one of an agent, even if the URI is damaged. */
export function isOfAgent(uri: string): boolean {
  return /^kcp:\/*agents/i.test(uri)
}
