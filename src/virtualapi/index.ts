// The virtual API server, as the roles see it.
export {
  certificateBackdatingMs,
  createCertificateAuthority,
  createCertificateVerifier,
  createPki,
  createPkiMaterial,
  FailureBudget,
  frontProxyFromHost,
  hostName,
  hasPki,
  isRenewalDue,
  openPki,
  ownServingNames,
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
} from './auth/authn/index.ts'
export { AuditWebhook, compilePolicy, parsePolicy, type CompiledPolicy } from './audit/index.ts'
export { lineScope, type AuditEvent, type AuditLog } from './request/request-audit.ts'
export type { AskHost } from './auth/access/index.ts'
export { followConfiguration } from './auth/sign-in/index.ts'
export { metricsReadersGroup } from './auth/authz/index.ts'
export { createMembers, type Members } from './outbound/members/index.ts'
export { rootCluster } from './background/directory/informed-directory.ts'
export { EndedRecord, Sessions, ticketMs, type Asking, type HostUsers, type SessionIdentity } from './console/index.ts'
export type { ClusterOwnership } from './request/ownership.ts'
export { PeerConnections, peerServerName, type PeerCredentials } from './server/peer-connections.ts'
export {
  compareDefinitions,
  type CustomResourceDefinition as ComparedDefinition,
  type DefinitionDifference,
} from './catalog/apiextensions/index.ts'
export { kubernetesVersion } from './discovery/version-info.ts'
export { createVirtualApi, type VirtualApi, type VirtualApiOptions } from './create-virtual-api.ts'
export { requireObjectBytes } from './kinds/resources/object-bytes.ts'
