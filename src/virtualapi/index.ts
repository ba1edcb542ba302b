// The virtual API server, as the roles see it.
export {
  certificateBackdatingMs,
  createCertificateAuthority,
  createCertificateVerifier,
  createPki,
  createPkiMaterial,
  frontProxyFromHost,
  hasPki,
  isRenewalDue,
  openPki,
  pkiFromSecret,
  pkiToSecret,
  renewedClientCertificate,
  signCertificate,
  tryKeyPair,
  tryRealm,
  type FrontProxyConfig,
  type KeyPair,
  type Pki,
  type ServingCertificateStore,
} from './authn/index.ts'
export { metricsReadersGroup } from './authz/index.ts'
export { createMembers, type Members } from './members/index.ts'
export { rootCluster } from './clusters/informed-directory.ts'
export type { ClusterOwnership } from './clusters/ownership.ts'
export { PeerConnections, peerServerName, type PeerCredentials } from './server/peer-connections.ts'
export { createVirtualApi, type VirtualApi, type VirtualApiOptions } from './create-virtual-api.ts'
export { requireObjectBytes } from './resources/object-bytes.ts'
