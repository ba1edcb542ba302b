// The identities of the parties of a move: a URI in the certificate, compared exactly. Each move has a CA of its own,
// whose key is forgotten once the three certificates are signed.
import { X509Certificate } from 'node:crypto'
import { createCertificateAuthority, signCertificate } from '#network/certificates/index.ts'
import { parties, type Party } from './contract.ts'

/** The files of one party, as the Secret and `--credentials` have them. */
export interface PartyCredentials {
  readonly 'tls.crt': string
  readonly 'tls.key': string
  readonly 'ca.crt': string
}

const movePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const backdatedMs = 5 * 60_000
const defaultValidMs = 14 * 86_400_000
/** Control opens connections, the source accepts them, the target does both. */
const usages = { control: 'client', source: 'server', target: 'peer' } as const

/** Makes a CA for this move and the credentials of its three parties. Throws if the name is not a DNS label. */
export async function issueMoverCredentials(
  move: string,
  { nowMs = Date.now(), validMs = defaultValidMs }: { nowMs?: number; validMs?: number } = {},
): Promise<Readonly<Record<Party, PartyCredentials>>> {
  if (!movePattern.test(move)) throw new Error(`"${move}" is not a name for a move: it must be a DNS label`)
  const validity = { notBefore: new Date(nowMs - backdatedMs), notAfter: new Date(nowMs + validMs) }
  const authority = await createCertificateAuthority({ commonName: `CA of move ${move}`.slice(0, 64), ...validity })
  const issue = async (party: Party): Promise<[Party, PartyCredentials]> => {
    const uris = [identityUri(move, party)]
    const subject = { commonName: `kcp mover ${party}` }
    const pair = await signCertificate(authority, { subject, usage: usages[party], uris, ...validity })
    return [party, { 'tls.crt': pair.certificate, 'tls.key': pair.key, 'ca.crt': authority.certificate }]
  }
  return Object.fromEntries(await Promise.all(parties.map(issue))) as Record<Party, PartyCredentials>
}

export function identityUri(move: string, party: Party): string {
  return `kcp://mover/${move}/${party}`
}

/** The move and party of a certificate (PEM). Throws if it names none, or more than one. */
export function identityOf(certificate: string): { readonly move: string; readonly party: Party } {
  const { subjectAltName = '' } = new X509Certificate(certificate)
  const [, move = '', party = ''] = /^URI:kcp:\/\/mover\/([^/]+)\/([a-z]+)$/.exec(subjectAltName) ?? []
  const found = parties.find((one) => one === party)
  if (found === undefined || !movePattern.test(move))
    throw new Error(`the certificate has no identity of a move: its names are "${subjectAltName}"`)
  return { move, party: found }
}

/**
 * True if these alternative names of a certificate, as Node prints them, are the identity alone. Node quotes names with
 * unusual characters, so no other certificate gives the same text.
 */
export function isIdentity(subjectAltName: string | undefined, move: string, party: Party): boolean {
  return subjectAltName === `URI:${identityUri(move, party)}`
}
