// Certificates by which replicas of `kcp apiserver` identify each other, and their authority, which is in a Secret that
// all replicas share. The authority is replaced while replicas run: all of them trust the next authority before the
// first of them uses it.
import { X509Certificate } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  certificateBackdatingMs,
  createCertificateAuthority,
  isRenewalDue,
  type KeyPair,
  type PeerCredentials,
  peerServerName,
  signCertificate,
  tryKeyPair,
} from '#virtualapi/index.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const name = 'kcp-replica-authority'
const day = 24 * 60 * 60 * 1000
const authorityDays = 365
/**
 * Milliseconds for which a new authority is trusted before it signs. Every replica reads the Secret many times in this
 * time.
 */
const trustFirstMs = 60 * 60_000
const tries = 5

interface Secret extends KubeObject {
  data?: Record<string, string>
}

export interface ReplicaAuthority {
  /** The authority that signs. */
  readonly current: KeyPair
  /** The certificates of all trusted authorities, PEM. */
  readonly trusted: string
}

/**
 * Reads the Secret; creates it if it is missing, and changes it if a renewal is due. Call it periodically. Rejects with
 * StatusError if the host does not respond.
 */
export async function replicaAuthority(
  client: KubeClient,
  { namespace, signal, clock = systemClock }: { namespace: string; signal: AbortSignal; clock?: Clock },
): Promise<ReplicaAuthority> {
  for (let attempt = 1; ; attempt++) {
    try {
      const secret = await client.tryGet<Secret>(secrets, { namespace, name }, { signal })
      const kept = keptIn(secret?.data ?? {})
      const next = await renewed(kept, clock)
      if (next !== kept) {
        const metadata = secret?.metadata ?? { name, namespace }
        const object: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, data: dataOf(next) }
        await (secret === undefined
          ? client.create(secrets, object, { signal })
          : client.update(secrets, object, { signal }))
      }
      return authorityOf(next)
    } catch (error) {
      const lostRace = isStatusError(error, 'Conflict') || isStatusError(error, 'AlreadyExists')
      if (!lostRace || attempt === tries) throw error
    }
  }
}

interface Kept {
  readonly current?: KeyPair
  /** The next authority: trusted already, signs later. */
  readonly next?: KeyPair
  /** Certificate of the previous authority, which signed certificates that may still be in use. PEM. */
  readonly previous?: string
}

/** The authorities after a renewal; the same object if no renewal is due. */
async function renewed(kept: Kept, clock: Clock): Promise<Kept & { readonly current: KeyPair }> {
  const { current, next, previous } = kept
  if (current === undefined) return { current: await createAuthority(clock) }
  if (next !== undefined) {
    const from = new X509Certificate(next.certificate).validFromDate.getTime() + certificateBackdatingMs
    if (clock.now() < from + trustFirstMs) return { ...kept, current }
    return { current: next, previous: current.certificate }
  }
  if (isRenewalDue(current.certificate, { clock }))
    return { current, next: await createAuthority(clock), ...(previous !== undefined && { previous }) }
  return kept as Kept & { readonly current: KeyPair }
}

function createAuthority(clock: Clock): Promise<KeyPair> {
  return createCertificateAuthority({
    commonName: 'kcp-replica-ca',
    notBefore: new Date(clock.now() - certificateBackdatingMs),
    notAfter: new Date(clock.now() + authorityDays * day),
  })
}

function keptIn(data: Readonly<Record<string, string>>): Kept {
  const text = (key: string): string | undefined => {
    const value = data[key]
    return value === undefined ? undefined : Buffer.from(value, 'base64').toString()
  }
  // A damaged authority is replaced by a new one.
  const [current, next] = [tryKeyPair(text('current.pem')), tryKeyPair(text('next.pem'))]
  const previous = text('previous.crt')
  return { ...(current && { current }), ...(next && { next }), ...(previous !== undefined && { previous }) }
}

function dataOf({ current, next, previous }: Kept): Record<string, string> {
  const texts = {
    'current.pem': current && current.certificate + current.key,
    'next.pem': next && next.certificate + next.key,
    'previous.crt': previous,
  }
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]) =>
      text === undefined ? [] : [[key, Buffer.from(text).toString('base64')]],
    ),
  )
}

function authorityOf({ current, next, previous }: Kept & { readonly current: KeyPair }): ReplicaAuthority {
  return { current, trusted: [current.certificate, next?.certificate, previous].filter((text) => text).join('') }
}

const certificateDays = 30

interface ReplicaCredentials {
  /** Credentials for connections to other replicas. */
  readonly client: PeerCredentials
  /** Credentials for connections from other replicas. */
  readonly server: KeyPair & { readonly peerCa: string }
}

export interface RenewedReplicaCredentials {
  readonly current: () => ReplicaCredentials
  /** Renews the credentials if that is due. Resolves with whether they have changed. */
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
