// Short-lived tokens for the use of one member or one logical cluster through kcp. A token names who asked for it, and
// grants nothing by itself: whoever accepts it asks again whether that user may still use the cluster.
import { createPrivateKey, createPublicKey, hash, randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT, type JWTPayload } from 'jose'
import { LRUCache } from 'lru-cache'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'

export const accessKinds = ['MemberCluster', 'LogicalCluster'] as const

/** What a token is for. */
export interface AccessTarget {
  readonly kind: (typeof accessKinds)[number]
  readonly name: string
  /** uid of the object: a new one of the same name needs a new token. */
  readonly uid: string
}

/** The user who asked for a token. */
export interface AccessHolder {
  /** Who authenticated the user: the host, logical cluster `root`, or the installation itself. */
  readonly realm: 'host' | 'root' | 'installation'
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
}

export interface AccessGrant {
  readonly target: AccessTarget
  readonly holder: AccessHolder
}

export interface AccessTokens {
  /** Signs a token. Undefined: the token would be longer than headers may be, because its holder has many groups. */
  issue(grant: AccessGrant): Promise<{ readonly token: string; readonly expiresMs: number } | undefined>
  /** True if the text looks like a token of this kind. No other verifier accepts such a token. */
  isOurs(token: string): boolean
  /** The grant of a token that is valid now; undefined: signature, kind or time is invalid. */
  verify(token: string, signal: AbortSignal): Promise<AccessGrant | undefined>
}

export const accessSeconds = 600
const issuer = 'https://kcp.dev/access'
const type = 'kcp-access+jwt'
const maxTokenLength = 8 * 1024
const maxCached = 5000

export function createAccessTokens(deps: {
  /** The private key that signs the tokens, PEM. */
  readonly privateKey: string
  readonly clock?: Clock
}): AccessTokens {
  const { clock = systemClock } = deps
  const privateKey = createPrivateKey(deps.privateKey)
  const publicKey = createPublicKey(privateKey)
  const alg = privateKey.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'
  const header = { alg, typ: type }
  const beginning = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`
  const verified = new LRUCache<string, AccessGrant & { readonly expiresMs: number }>({ max: maxCached })
  const isOurs = (token: string): boolean => token.length <= maxTokenLength && token.startsWith(beginning)

  return {
    async issue({ target, holder }) {
      const nowSeconds = Math.floor(clock.now() / 1000)
      const token = await new SignJWT({ target, holder })
        .setProtectedHeader(header)
        .setIssuer(issuer)
        .setAudience(audienceOf(target))
        .setIssuedAt(nowSeconds)
        .setNotBefore(nowSeconds)
        .setExpirationTime(nowSeconds + accessSeconds)
        .setJti(randomUUID())
        .sign(privateKey)
      return token.length > maxTokenLength ? undefined : { token, expiresMs: (nowSeconds + accessSeconds) * 1000 }
    },
    isOurs,
    async verify(token, signal) {
      if (!isOurs(token)) return undefined
      const key = hash('sha256', token, 'base64')
      const known = verified.get(key)
      if (known !== undefined) return clock.now() < known.expiresMs ? known : undefined
      try {
        const currentDate = new Date(clock.now())
        const options = { algorithms: [alg], issuer, typ: type, currentDate, requiredClaims: ['exp', 'aud'] }
        const { payload } = await jwtVerify(token, publicKey, options)
        const grant = tryGrant(payload)
        if (grant !== undefined) verified.set(key, grant)
        return grant
      } catch {
        signal.throwIfAborted()
        return undefined
      }
    },
  }
}

function audienceOf({ kind, uid }: AccessTarget): string {
  return `${issuer}/${kind}/${uid}`
}

function tryGrant(payload: JWTPayload): (AccessGrant & { readonly expiresMs: number }) | undefined {
  const { target, holder } = payload as { readonly target?: JsonValue; readonly holder?: JsonValue }
  if (!isJsonObject(target) || !isJsonObject(holder) || payload.exp === undefined) return undefined
  const grant = { target, holder } as unknown as AccessGrant
  if (!accessKinds.includes(grant.target.kind) || payload.aud !== audienceOf(grant.target)) return undefined
  return { ...grant, expiresMs: payload.exp * 1000 }
}
