// The certificate request (PKCS #10) of an agent.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { badRequest } from '#apimachinery/status/index.ts'
import { agentsOrganization } from '#virtualapi/auth/authn/index.ts'
import { keyFingerprint } from './identity.ts'

export interface AgentKey {
  /** SubjectPublicKeyInfo in DER. */
  readonly publicKey: Uint8Array
  readonly fingerprint: string
}

const maxCharacters = 4096
const form = /^-----BEGIN CERTIFICATE REQUEST-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE REQUEST-----\s*$/
/** The SubjectPublicKeyInfo of a key of P-256 before the point's 64 bytes: one form, so that a key has one fingerprint. */
const p256Head = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')

/**
 * The key of a request for a certificate of this member. Rejects with 400 unless the request is signed by this key,
 * names this member, and asks for nothing more: what is not asked for need not be refused when it is signed.
 */
export async function readSigningRequest(text: string, member: string): Promise<AgentKey> {
  if (text.length > maxCharacters || !form.test(text)) throw refused('one PEM block CERTIFICATE REQUEST')
  const request = parse(text)
  if (!(await isSigned(request))) throw refused('a signature of its own key')
  const [organization, commonName, ...others] = request.subjectName.toJSON()
  const isOwn = isOnly(organization, 'O', agentsOrganization) && isOnly(commonName, 'CN', member)
  if (!isOwn || others.length > 0) throw refused(`the subject O=${agentsOrganization}, CN=${member} and nothing else`)
  if (request.attributes.length > 0 || request.extensions.length > 0) throw refused('no extensions or attributes')
  const publicKey = new Uint8Array(request.publicKey.rawData)
  if (publicKey.length !== p256Head.length + 64 || !p256Head.equals(publicKey.subarray(0, p256Head.length)))
    throw refused('an ECDSA key of the curve P-256')
  return { publicKey, fingerprint: keyFingerprint(publicKey) }
}

function parse(text: string): x509.Pkcs10CertificateRequest {
  try {
    return new x509.Pkcs10CertificateRequest(text)
  } catch (cause) {
    throw badRequest('the certificate request cannot be read', cause)
  }
}

async function isSigned(request: x509.Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify()
  } catch {
    return false
  }
}

function isOnly(attributes: x509.JsonName[number] | undefined, type: string, value: string): boolean {
  const [[name, values] = ['', []], ...others] = Object.entries(attributes ?? {})
  return name === type && others.length === 0 && values.length === 1 && values[0] === value
}

function refused(wanted: string): Error {
  return badRequest(`the certificate request of an agent has ${wanted}`)
}
