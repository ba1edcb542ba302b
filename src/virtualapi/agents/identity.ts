// The identity of an agent: the member in its client certificate. The certificate opens the agent's tunnel and gives no
// right in any logical cluster: the authenticator refuses it (auth/authn/create-authenticator.ts).
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createHash } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import type { Clock } from '#async/index.ts'
import {
  agentsOrganization,
  createCertificateVerifier,
  tryAgentUid,
  type CertificateVerdict,
} from '#virtualapi/auth/authn/index.ts'

/** An agent by its certificate. */
export interface AgentIdentity {
  /** Name and uid of its MemberCluster. */
  readonly member: string
  readonly uid: string
  /** SHA-256 of the certificate, hexadecimal. */
  readonly fingerprint: string
  /** The fingerprint of its key. */
  readonly key: string
  /** The end of the certificate, milliseconds. */
  readonly expiresMs: number
}

export interface AgentIdentities {
  /**
   * The agent of a client certificate; undefined unless the certificate is a valid one that was issued to an agent. It
   * may have been revoked since.
   */
  agentOf(certificate: DetailedPeerCertificate | undefined): AgentIdentity | undefined
  /** The agent of a certificate that would be valid if it had not expired. */
  expiredAgentOf(certificate: DetailedPeerCertificate | undefined): AgentIdentity | undefined
}

const memberName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const clientAuth = '1.3.6.1.5.5.7.3.2'

/** `clientCa`: the authority of client certificates, PEM. */
export function createAgentIdentities(clientCa: string, { clock }: { readonly clock: Clock }): AgentIdentities {
  const verifier = createCertificateVerifier(clientCa, { clock })
  const identityIf = (
    certificate: DetailedPeerCertificate | undefined,
    is: (verdict: CertificateVerdict) => boolean,
  ): AgentIdentity | undefined => {
    // Node returns an empty object if the client sent no certificate.
    if ((certificate as { raw?: Buffer } | undefined)?.raw === undefined || certificate === undefined) return undefined
    return is(verifier.verify(certificate)) ? identityIn(certificate.raw) : undefined
  }
  return {
    agentOf: (certificate) => identityIf(certificate, ({ ok }) => ok),
    // Expiry is looked at last, so the authority has signed the certificate.
    expiredAgentOf: (certificate) => identityIf(certificate, (verdict) => !verdict.ok && verdict.reason === 'expired'),
  }
}

/** Whether a MemberCluster of this name may be in pull mode: the name is an attribute of a certificate. */
export function isAgentMemberName(name: string): boolean {
  return memberName.test(name)
}

/** The fingerprint of a certificate (PEM). */
export function certificateFingerprint(certificate: string): string {
  return fingerprintOf(new x509.X509Certificate(certificate).rawData)
}

/** The fingerprint of a public key (SubjectPublicKeyInfo in DER), as ssh prints it. */
export function keyFingerprint(publicKey: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(publicKey).digest('base64').replace('=', '')}`
}

/**
 * The agent in a certificate of our authority. Every part must be exactly as it is issued, with nothing beside it: a
 * tenant chooses the subject of its own certificates, and names that begin alike belong to different members.
 */
function identityIn(raw: Uint8Array): AgentIdentity | undefined {
  const certificate = new x509.X509Certificate(raw)
  const subject = certificate.subjectName.toJSON()
  const [organization, commonName] = subject.map((attributes) => onlyAttribute(attributes))
  if (subject.length !== 2 || organization?.type !== 'O' || commonName?.type !== 'CN') return undefined
  const member = commonName.value
  const uid = uidIn(certificate)
  if (organization.value !== agentsOrganization || !isAgentMemberName(member) || uid === undefined) return undefined
  if (!isForClientsOnly(certificate)) return undefined
  return {
    member,
    uid,
    fingerprint: fingerprintOf(raw),
    key: keyFingerprint(new Uint8Array(certificate.publicKey.rawData)),
    expiresMs: certificate.notAfter.getTime(),
  }
}

function fingerprintOf(raw: ArrayBuffer | Uint8Array): string {
  return createHash('sha256').update(new Uint8Array(raw)).digest('hex')
}

function onlyAttribute(attributes: x509.JsonName[number]): { type: string; value: string } | undefined {
  const [[type, values] = ['', []], ...others] = Object.entries(attributes)
  const [value, ...more] = values
  return value === undefined || others.length > 0 || more.length > 0 ? undefined : { type, value }
}

function uidIn(certificate: x509.X509Certificate): string | undefined {
  const [name, ...others] = certificate.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? []
  return name?.type !== 'url' || others.length > 0 ? undefined : tryAgentUid(name.value)
}

function isForClientsOnly(certificate: x509.X509Certificate): boolean {
  const usages = certificate.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? []
  const isAuthority = certificate.getExtension(x509.BasicConstraintsExtension)?.ca !== false
  return !isAuthority && usages.length === 1 && usages[0] === clientAuth
}
