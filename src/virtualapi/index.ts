// The virtual API server, as the roles see it.
export {
  certificateBackdatingMs,
  createPki,
  createPkiMaterial,
  frontProxyFromHost,
  hasPki,
  isRenewalDue,
  openPki,
  pkiFromSecret,
  pkiToSecret,
  renewedClientCertificate,
  tryKeyPair,
  type FrontProxyConfig,
  type KeyPair,
  type Pki,
  type ServingCertificateStore,
} from './authn/index.ts'
export { createMembers, type Members } from './members/index.ts'
export { rootCluster } from './clusters/index.ts'
export { createVirtualApi, type VirtualApi, type VirtualApiOptions } from './create-virtual-api.ts'
export { requireObjectBytes } from './resources/object-bytes.ts'
