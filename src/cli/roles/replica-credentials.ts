// The certificates by which this replica and the others know each other, renewed while they run.
import type { KubeClient } from '#client/index.ts'
import {
  certificateBackdatingMs,
  isRenewalDue,
  peerServerName,
  signCertificate,
  type KeyPair,
  type PeerCredentials,
} from '#virtualapi/index.ts'
import { replicaAuthority, type ReplicaAuthority } from './replica-authority.ts'

const certificateDays = 30
const day = 24 * 60 * 60 * 1000

export interface ReplicaCredentials {
  /** For connections to other replicas. */
  readonly client: PeerCredentials
  /** For connections from them. */
  readonly server: KeyPair & { readonly peerCa: string }
}

export interface RenewedReplicaCredentials {
  readonly current: () => ReplicaCredentials
  /** Renews what is due. Resolves with whether anything changed. */
  readonly renew: () => Promise<boolean>
}

/** Credentials for the replica of this name, signed by the authority that all replicas share. */
export async function replicaCredentials(
  client: KubeClient,
  { name, ...waiting }: { readonly name: string; readonly namespace: string; readonly signal: AbortSignal },
): Promise<RenewedReplicaCredentials> {
  let authority = await replicaAuthority(client, waiting)
  let current = await signed(name, authority)
  return {
    current: () => current,
    async renew() {
      const now = await replicaAuthority(client, waiting)
      const isSame = now.trusted === authority.trusted && now.current.certificate === authority.current.certificate
      if (isSame && !isRenewalDue(current.client.certificate)) return false
      current = await signed(name, now)
      authority = now
      return true
    },
  }
}

async function signed(name: string, { current, trusted }: ReplicaAuthority): Promise<ReplicaCredentials> {
  const validity = {
    notBefore: new Date(Date.now() - certificateBackdatingMs),
    notAfter: new Date(Date.now() + certificateDays * day),
  }
  const subject = { commonName: name }
  const dnsNames = [peerServerName(name)]
  const [client, server] = await Promise.all([
    signCertificate(current, { subject, usage: 'client', ...validity }),
    signCertificate(current, { subject, usage: 'server', dnsNames, ...validity }),
  ])
  return { client: { ...client, ca: trusted }, server: { ...server, peerCa: trusted } }
}
