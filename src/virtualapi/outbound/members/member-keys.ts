// The keys with which members sign the tokens of their pods, as their API servers publish them (OpenID Connect
// Discovery).
import { parseJsonText } from '#apimachinery/json/index.ts'
import { createLocalJWKSet, errors, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import type { MemberConnection } from './member-connections.ts'

/** The most milliseconds for which read keys are used. A revoked key is accepted for at most this time. */
const maxAgeMs = 15 * 60_000
/**
 * The keys are read again for an unknown key id, but not more often than this, because any client can send tokens with
 * made-up ids.
 */
const refreshMs = 10_000
const maxBytes = 256 * 1024
const maxKeys = 100
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

interface KeySet {
  readonly find: ReturnType<typeof createLocalJWKSet>
}

export interface MemberKeys {
  /**
   * The claims of a token that the member signed for this audience and that has not expired; undefined otherwise. Reads
   * the member's keys at most once in ten seconds. Rejects with the error of that read if it fails.
   */
  verify(
    member: MemberConnection,
    token: string,
    audience: string,
    signal: AbortSignal,
  ): Promise<JWTPayload | undefined>
}

export function createMemberKeys({ clock }: { clock: Clock }): MemberKeys {
  // The keys by connection, because other credentials may lead to another cluster. They are dropped with the
  // connection.
  const reading = new WeakMap<MemberConnection, { readonly startedAt: number; readonly keys: Promise<KeySet> }>()

  /** The keys. They are read after `notBefore`, unless the last read began less than `refreshMs` ago. */
  const keysOf = (member: MemberConnection, notBefore: number): Promise<KeySet> => {
    const known = reading.get(member)
    const now = clock.monotonic()
    if (known !== undefined && (known.startedAt >= notBefore || now - known.startedAt < refreshMs)) return known.keys
    // Requests share one read, so it must not end with the request that started it. The transport has a timeout.
    const keys = readKeys(member)
    keys.catch(() => undefined)
    reading.set(member, { startedAt: now, keys })
    return keys
  }

  return {
    async verify(member, token, audience, signal) {
      const now = clock.monotonic()
      const check = async ({ find }: KeySet): Promise<JWTPayload> =>
        (await jwtVerify(token, find, { audience, algorithms, currentDate: new Date(clock.now()) })).payload
      const known = await keysOf(member, now - maxAgeMs)
      signal.throwIfAborted()
      try {
        return await check(known)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) return undefined
      }
      const renewed = await keysOf(member, now)
      signal.throwIfAborted()
      return renewed === known ? undefined : await check(renewed).catch(() => undefined)
    },
  }
}

const readTimeoutMs = 10_000

async function readKeys({ name, transport }: MemberConnection): Promise<KeySet> {
  const path = '/openid/v1/jwks'
  const signal = AbortSignal.timeout(readTimeoutMs)
  const { status, body } = await transport.request({ method: 'GET', path, headers: { accept: '*/*' }, signal })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes)
      throw serviceUnavailable(`member cluster "${name}" publishes more than ${maxBytes} bytes of keys`)
    chunks.push(chunk)
  }
  if (status !== 200) throw serviceUnavailable(`member cluster "${name}" answers ${status} when asked for its keys`)
  const set = parseJsonText(Buffer.concat(chunks).toString()) as unknown as JSONWebKeySet
  if (set.keys.length > maxKeys)
    throw serviceUnavailable(`member cluster "${name}" publishes more than ${maxKeys} keys`)
  return { find: createLocalJWKSet(set) }
}
