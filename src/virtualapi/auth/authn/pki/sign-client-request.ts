// Signs a certificate request that somebody else has made.
import * as x509 from '@peculiar/x509'
import { signKey, type KeyPair } from './certificate-authority.ts'

/** Returns a client certificate, PEM, with the key and the subject of the request (PKCS #10, PEM), and none of its extensions. */
export async function signClientRequest(
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
