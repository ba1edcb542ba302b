// Sessions and sign-in links of the console, as sealed texts: nobody outside can read, alter or make one, and no process
// keeps any of them. All processes of an installation have the same key.
import { hash, randomUUID } from 'node:crypto'
import { EncryptJWT, jwtDecrypt, type JWTPayload } from 'jose'
import { LRUCache } from 'lru-cache'
import { isJsonObject, tryClusterId, type ClusterId } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'

/** What began a session, and what its identity is read from in every request. */
export type SessionIdentity =
  /** The admin of the installation. */
  | { readonly as: 'installation' }
  /** The admin of one logical cluster. */
  | { readonly as: 'clusterAdmin'; readonly cluster: ClusterId }
  /** A bearer token for one logical cluster. */
  | { readonly as: 'token'; readonly cluster: ClusterId; readonly token: string }
  /** A bearer token of the host. */
  | { readonly as: 'hostToken'; readonly token: string }

export interface Session {
  /** Names the session in the record of ended sessions; no secret. */
  readonly id: string
  readonly identity: SessionIdentity
  /** When the session began, was last used, and ends at the latest: milliseconds since 1970. */
  readonly beganMs: number
  readonly usedMs: number
  readonly endsMs: number
}

/** A sign-in link that was opened. */
export interface Ticket {
  readonly id: string
  readonly identity: SessionIdentity
  readonly endsMs: number
}

/** How long a session lasts at most, and how long without a request. */
export const sessionMs = 8 * 60 * 60_000
const idleMs = 60 * 60_000
/** After how long a request renews the time of last use. */
export const renewAfterMs = 5 * 60_000
/** How long a sign-in link is valid. */
export const ticketMs = 5 * 60_000
/** Browsers keep no larger cookie. */
export const maxSealedLength = 4000
/** Bound of the sessions that are kept opened, so that each is decrypted once: characters of their sealed texts. */
const maxOpenedLength = 4 * 1024 * 1024

const algorithm = { alg: 'dir', enc: 'A256GCM' } as const

export class Sessions {
  readonly #key: Uint8Array
  readonly #clock: Pick<Clock, 'now'>
  readonly #opened = new LRUCache<string, Session>({
    maxSize: maxOpenedLength,
    sizeCalculation: ({ identity }) => 500 + ('token' in identity ? identity.token.length : 0),
  })

  constructor({ key, clock }: { readonly key: Uint8Array; readonly clock: Pick<Clock, 'now'> }) {
    this.#key = key
    this.#clock = clock
  }

  /** A new session. `endsMs`: an earlier end than that of any session, such as that of the token behind it. */
  begin(identity: SessionIdentity, { endsMs = Infinity }: { readonly endsMs?: number } = {}): Session {
    const now = this.#clock.now()
    return { id: randomUUID(), identity, beganMs: now, usedMs: now, endsMs: Math.min(now + sessionMs, endsMs) }
  }

  /** The session with this moment as its last use. */
  used(session: Session): Session {
    return { ...session, usedMs: this.#clock.now() }
  }

  /** The text of the session's cookie. */
  async seal({ id, identity, beganMs, usedMs, endsMs }: Session): Promise<string> {
    return await this.#sealed('session', { jti: id, exp: seconds(endsMs), identity, beganMs, usedMs, endsMs })
  }

  /** The session of a cookie; undefined if the text is not a session of this installation, or the session is over. */
  async open(text: string): Promise<Session | undefined> {
    if (text.length > maxSealedLength) return undefined
    const key = hash('sha256', text, 'base64')
    const session = this.#opened.get(key) ?? sessionOf(await this.#claims('session', text))
    if (session === undefined) return undefined
    this.#opened.set(key, session)
    const now = this.#clock.now()
    return now < session.endsMs && now < session.usedMs + idleMs ? session : undefined
  }

  /** The text of a new sign-in link. */
  async issueTicket(identity: SessionIdentity): Promise<string> {
    const claims = { jti: randomUUID(), exp: seconds(this.#clock.now() + ticketMs), identity }
    return await this.#sealed('ticket', claims)
  }

  /** The ticket of a sign-in link; undefined if it is not one of this installation, or its time is over. */
  async openTicket(text: string): Promise<Ticket | undefined> {
    if (text.length > maxSealedLength) return undefined
    const claims = await this.#claims('ticket', text)
    const identity = identityOf(claims?.['identity'])
    if (claims?.jti === undefined || claims.exp === undefined || identity === undefined) return undefined
    return { id: claims.jti, identity, endsMs: claims.exp * 1000 }
  }

  async #sealed(audience: string, claims: JWTPayload): Promise<string> {
    return await new EncryptJWT(claims).setProtectedHeader(algorithm).setAudience(audience).encrypt(this.#key)
  }

  async #claims(audience: string, text: string): Promise<JWTPayload | undefined> {
    try {
      const { payload } = await jwtDecrypt(text, this.#key, {
        audience,
        currentDate: new Date(this.#clock.now()),
        contentEncryptionAlgorithms: [algorithm.enc],
        keyManagementAlgorithms: [algorithm.alg],
      })
      return payload
    } catch {
      return undefined
    }
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

function sessionOf(claims: JWTPayload | undefined): Session | undefined {
  if (claims === undefined) return undefined
  const { jti: id, beganMs, usedMs, endsMs } = claims
  const identity = identityOf(claims['identity'])
  if (id === undefined || identity === undefined) return undefined
  if (typeof beganMs !== 'number' || typeof usedMs !== 'number' || typeof endsMs !== 'number') return undefined
  return { id, identity, beganMs, usedMs, endsMs }
}

function identityOf(value: unknown): SessionIdentity | undefined {
  if (!isJsonObject(value)) return undefined
  const { as, cluster: id, token } = value as Record<string, unknown>
  const cluster = typeof id === 'string' ? tryClusterId(id) : undefined
  if (as === 'installation') return { as }
  if (as === 'clusterAdmin' && cluster !== undefined) return { as, cluster }
  if (as === 'token' && cluster !== undefined && typeof token === 'string') return { as, cluster, token }
  if (as === 'hostToken' && typeof token === 'string') return { as, token }
  return undefined
}

/** The user of a session that an admin began with a sign-in link: the user of the kubeconfigs that admins get. */
export function adminOf(
  session: Session,
  identity: SessionIdentity & { as: 'installation' | 'clusterAdmin' },
): UserInfo {
  const groups = ['system:masters', 'system:authenticated']
  const extra = { 'authentication.kubernetes.io/credential-id': [`CONSOLE=${session.id}`] }
  return identity.as === 'installation'
    ? { name: 'kcp-admin', groups, extra, realm: { kind: 'installation' } }
    : { name: 'admin', groups, extra, realm: { kind: 'cluster', id: identity.cluster } }
}
