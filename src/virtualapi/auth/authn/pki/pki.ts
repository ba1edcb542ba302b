// An installation's keys: the authority of client certificates, the authority of our serving certificate, and the
// signing key of ServiceAccount tokens. Neither authority is ever the host's requestheader authority.
import { LRUCache } from 'lru-cache'
import { createPrivateKey, hkdfSync, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import {
  createCertificateAuthority,
  isRenewalDue,
  createSigningKey,
  distinguishedName,
  signCertificate,
  type KeyPair,
  signKey,
} from '#network/certificates/index.ts'
import { agentUri, realmUri, type CertificateRealm } from './realm-uri.ts'
import { frontProxyPairs, type FrontProxyPair } from './front-proxy-pair.ts'
import * as x509 from '@peculiar/x509'

/** The stored keys, all PEM. */
export interface PkiMaterial {
  readonly clientCa: KeyPair
  readonly servingCa: KeyPair
  /** Private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
}

export interface ClientCertificateRequest {
  readonly commonName: string
  readonly organizations: readonly string[]
  /** Where the certificate is valid: in one logical cluster, or in the whole installation. */
  readonly realm: CertificateRealm
  /** Validity in days; never beyond that of the authority. */
  readonly days: number
}

/**
 * A request for a client certificate for a key of the requester's own. Its signature was verified when it was stored.
 */
export interface ClientSigningRequest {
  /** PKCS #10, PEM. */
  readonly request: string
  readonly realm: CertificateRealm
  /** Validity in seconds; never beyond that of the authority. */
  readonly seconds: number
}

/** A certificate for the agent of a member, for a key of the agent's own. */
export interface AgentCertificateRequest {
  /** Name and uid of the MemberCluster. */
  readonly member: string
  readonly uid: string
  /** The public key, SubjectPublicKeyInfo in DER. The agent has proved that it has the private key. */
  readonly publicKey: Uint8Array
  /** Validity in seconds; never beyond that of the authority. */
  readonly seconds: number
}

/** The organization in the subject of the certificates of agents. */
export const agentsOrganization = 'kcp.dev:agents'

export interface Pki {
  /** The authority of client certificates, PEM. */
  readonly clientCa: string
  /** The authority of our serving certificate, PEM: for kubeconfigs and `kube-root-ca.crt`. */
  readonly servingCa: string
  /** Private key that signs ServiceAccount tokens, PEM. */
  readonly serviceAccountKey: string
  /**
   * The authority and client certificate by which aggregated API servers of this logical cluster recognize our
   * requests.
   */
  frontProxy(cluster: ClusterId): FrontProxyPair
  /** The key of 32 bytes that seals sessions and sign-in links of the console. All processes derive the same one. */
  consoleKey(): Uint8Array
  issueClientCertificate(request: ClientCertificateRequest): Promise<KeyPair>
  /** Signs the key and subject of a PKCS #10 request for one realm; nothing else of the request counts. Returns PEM. */
  signClientRequest(request: ClientSigningRequest): Promise<string>
  /** Signs a certificate with which the agent of a member opens its tunnel, and does nothing else. Returns PEM. */
  signAgentKey(request: AgentCertificateRequest): Promise<string>
  /**
   * A serving certificate for our own names and `hosts` (DNS names and IP addresses). Returns the stored certificate
   * while its names are the same and its renewal is not due, else issues a new one, so it must be called regularly.
   */
  servingCertificate(hosts?: readonly string[]): Promise<KeyPair>
}

/** Keeps serving certificates across restarts, and shares each with other processes that need the same names. */
export interface ServingCertificateStore {
  /** The stored certificate of these names (sorted), usable or not; undefined if there is none. */
  load(names: readonly string[]): Promise<KeyPair | undefined>
  /**
   * Stores the certificate. Resolves with the stored one: `pair`, or a certificate that another process has stored in
   * the meantime.
   */
  save(names: readonly string[], pair: KeyPair): Promise<KeyPair>
}

/** Names that are always in our serving certificate; pods in members use `kubernetes.default.svc`. */
export const ownServingNames = [
  '127.0.0.1',
  '::1',
  '10.96.0.1',
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
] as const

const day = 24 * 60 * 60 * 1000
/** How far notBefore lies in the past, for clients whose clocks are behind. */
export const certificateBackdatingMs = 5 * 60 * 1000
const servingDays = 90

/** Generates the keys of a new installation. */
export async function createPkiMaterial({ clock = systemClock }: { clock?: Clock } = {}): Promise<PkiMaterial> {
  const validity = { notBefore: notBeforeNow(clock), notAfter: new Date(clock.now() + 3650 * day) }
  const [clientCa, servingCa, serviceAccountKey] = await Promise.all([
    createCertificateAuthority({ commonName: 'kcp-client-ca', ...validity }),
    createCertificateAuthority({ commonName: 'kcp-serving-ca', ...validity }),
    createSigningKey(),
  ])
  return { clientCa, servingCa, serviceAccountKey }
}

/** The PKI with these keys. Without `store` the serving certificate lives as long as the process. */
export function createPki(
  material: PkiMaterial,
  { clock = systemClock, store }: { clock?: Clock; store?: ServingCertificateStore } = {},
): Pki {
  const notAfter = (authority: KeyPair, days: number): Date =>
    new Date(Math.min(clock.now() + days * day, new X509Certificate(authority.certificate).validToDate.getTime()))
  let serving: KeyPair | undefined
  const frontProxies = new LRUCache<ClusterId, FrontProxyPair>({ max: 1000 })
  const frontProxyPair = frontProxyPairs(material.clientCa.key)

  return {
    clientCa: material.clientCa.certificate,
    servingCa: material.servingCa.certificate,
    serviceAccountKey: material.serviceAccountKey,
    frontProxy: (cluster) => {
      let pair = frontProxies.get(cluster)
      if (pair === undefined) frontProxies.set(cluster, (pair = frontProxyPair(cluster)))
      return pair
    },
    consoleKey: () => derivedSecret(material.clientCa.key, 'kcp.dev/console'),
    issueClientCertificate: ({ commonName, organizations, realm, days }) =>
      signCertificate(material.clientCa, {
        subject: { commonName, organizations },
        usage: 'client',
        uris: [realmUri(realm)],
        notBefore: notBeforeNow(clock),
        notAfter: notAfter(material.clientCa, days),
      }),
    signClientRequest: ({ request, realm, seconds }) =>
      signClientRequest(material.clientCa, {
        request,
        uris: [realmUri(realm)],
        notBefore: notBeforeNow(clock),
        notAfter: notAfter(material.clientCa, seconds / (24 * 60 * 60)),
      }),
    signAgentKey: ({ member, uid, publicKey, seconds }) =>
      signKey(material.clientCa, {
        subject: distinguishedName({ commonName: member, organizations: [agentsOrganization] }),
        publicKey: new x509.PublicKey(Buffer.from(publicKey)),
        usage: 'client',
        uris: [agentUri(uid)],
        notBefore: notBeforeNow(clock),
        notAfter: notAfter(material.clientCa, seconds / (24 * 60 * 60)),
      }),
    servingCertificate: async (hosts = []) => {
      const names = [...new Set([...ownServingNames, ...hosts])].sort()
      const isGood = (pair: KeyPair | undefined): pair is KeyPair =>
        pair !== undefined && isUsable(pair, material.servingCa, names, clock)
      if (isGood(serving)) return serving
      // Another process may have renewed it already.
      serving = await store?.load(names)
      if (isGood(serving)) return serving
      const signed = await signCertificate(material.servingCa, {
        subject: { commonName: 'kcp' },
        usage: 'server',
        dnsNames: names.filter((name) => isIP(name) === 0),
        ipAddresses: names.filter((name) => isIP(name) !== 0),
        notBefore: notBeforeNow(clock),
        notAfter: notAfter(material.servingCa, servingDays),
      })
      const kept = await store?.save(names, signed)
      serving = isGood(kept) ? kept : signed
      return serving
    },
  }
}

/** 32 bytes that only holders of the private key (PEM) can derive. */
function derivedSecret(privateKey: string, purpose: string): Uint8Array {
  const material = createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'der' })
  return new Uint8Array(hkdfSync('sha256', material, '', purpose, 32))
}

function isUsable(pair: KeyPair, authority: KeyPair, names: readonly string[], clock: Clock): boolean {
  if (isRenewalDue(pair.certificate, { clock })) return false
  const certificate = new X509Certificate(pair.certificate)
  if (!certificate.verify(new X509Certificate(authority.certificate).publicKey)) return false
  const covered = (certificate.subjectAltName ?? '').split(', ').length === names.length
  return covered && names.every((name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)))
}

/** notBefore of a new certificate. */
function notBeforeNow(clock: Clock): Date {
  return new Date(clock.now() - certificateBackdatingMs)
}

/**
 * Returns a client certificate, PEM, with the key and the subject of the request (PKCS #10, PEM), and none of its
 * extensions.
 */
async function signClientRequest(
  authority: KeyPair,
  options: {
    readonly request: string
    readonly uris: readonly string[]
    readonly notBefore: Date
    readonly notAfter: Date
  },
): Promise<string> {
  const { request, ...others } = options
  const { subjectName: subject, publicKey } = new x509.Pkcs10CertificateRequest(request)
  return signKey(authority, { ...others, usage: 'client', subject, publicKey })
}

/**
 * Returns a function for the current client certificate: it gives the same one until the renewal is due, then a new
 * one.
 */
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
