// The authority of the certificates by which replicas of `kcp apiserver` know each other, in a Secret that they share. It is
// replaced while they run: the next one is trusted by all before the first of them uses it.
import { X509Certificate } from 'node:crypto'
import { systemClock, type Clock } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  certificateBackdatingMs,
  createCertificateAuthority,
  isRenewalDue,
  tryKeyPair,
  type KeyPair,
} from '#virtualapi/index.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const name = 'kcp-replica-authority'
const day = 24 * 60 * 60 * 1000
const authorityDays = 365
/** Every replica reads the Secret many times in this time. */
const trustFirstMs = 60 * 60_000
const tries = 5

interface Secret extends KubeObject {
  data?: Record<string, string>
}

export interface ReplicaAuthority {
  /** Signs. */
  readonly current: KeyPair
  /** All that are trusted, PEM. */
  readonly trusted: string
}

/**
 * Reads the Secret; creates it if it is missing, and changes it where a renewal is due. Call it again and again. Rejects with
 * StatusError where the host does not answer.
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
  /** Trusted already; signs later. */
  readonly next?: KeyPair
  /** Signed what may still be used. PEM. */
  readonly previous?: string
}

/** The same object if there is nothing to do. */
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
  // One that is damaged is made again.
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
