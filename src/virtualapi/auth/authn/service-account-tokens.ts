// Issues and verifies ServiceAccount tokens. All are signed with one key; the issuer names the logical cluster:
// `https://kubernetes.default.svc/clusters/ID`. The issuer is not an address, so it stays the same when the address of
// the server changes. Ids are never reused.
import { createHash, createPrivateKey, createPublicKey, hash, randomUUID, type KeyObject } from 'node:crypto'
import { decodeJwt, exportJWK, jwtVerify, SignJWT, type JWK, type JWTPayload } from 'jose'
import { LRUCache } from 'lru-cache'
import { isJsonObject, tryClusterId, type ClusterId, type JsonValue } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { Buffer } from 'node:buffer'
import type { WatchCache } from '#store/watch-cache/index.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'

/** The audience of this API, in every logical cluster. */
export const apiAudience = 'https://kubernetes.default.svc'

/** The current state of an object that a token names. */
export interface NamedObject {
  readonly uid: string
  /** deletionTimestamp in milliseconds, if the object is being deleted. */
  readonly deletedMs?: number
}

/**
 * Reads an object that a token is bound to, from memory; undefined if it does not exist. Called for every request, so
 * that a deletion counts at once.
 */
export type FindBoundObject = (
  cluster: ClusterId,
  place: { resource: 'serviceaccounts' | 'pods' | 'secrets' | 'nodes'; namespace: string; name: string },
  signal: AbortSignal,
) => Promise<NamedObject | undefined>

export interface NameAndUid {
  readonly name: string
  readonly uid: string
}

/** The claims of a token to issue. */
export interface TokenGrant {
  readonly cluster: ClusterId
  readonly namespace: string
  readonly serviceAccount: NameAndUid
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
  /**
   * The token is invalid once this object is deleted. The same holds for `secret` and `node`, but a `node` beside a
   * `pod` is information only.
   */
  readonly pod?: NameAndUid
  readonly secret?: NameAndUid
  readonly node?: NameAndUid
}

export interface VerifiedAccount {
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  readonly audiences: readonly string[]
}

export interface ServiceAccountTokens {
  /** Signs a token that is valid from now on. */
  issue(grant: TokenGrant): Promise<string>
  /** True if the unverified token names us as its issuer. */
  hasOurIssuer(token: string): boolean
  /** The logical cluster in the issuer of the unverified token; undefined if we are not its issuer. */
  issuedFor(token: string): ClusterId | undefined
  /**
   * The user of a valid token; `wanted` is the logical cluster of the path, if any. Undefined: signature, issuer or
   * time is invalid, or the ServiceAccount or the bound object no longer exists. The caller checks the audiences.
   */
  verify(token: string, wanted: ClusterId | undefined, signal: AbortSignal): Promise<VerifiedAccount | undefined>
  /** The public key as a JWK set, for other verifiers of our tokens. */
  keys(): Promise<{ keys: JWK[] }>
  readonly algorithm: string
}

const issuerPrefix = `${apiAudience}/clusters/`
const maxCached = 20_000
const maxTokenLength = 16 * 1024
/**
 * How long a token is valid after the deletionTimestamp of its ServiceAccount or bound object, milliseconds, as in
 * kube-apiserver.
 */
const leewayMs = 60_000

/** The issuer (`iss`) of the tokens of a logical cluster. */
export function issuerOf(cluster: ClusterId): string {
  return issuerPrefix + cluster
}

export function createServiceAccountTokens(deps: {
  /** The private key that signs the tokens, PEM. */
  readonly privateKey: string
  readonly directory: ClusterDirectory
  readonly find: FindBoundObject
  readonly clock?: Clock
}): ServiceAccountTokens {
  const { directory, find, clock = systemClock } = deps
  const privateKey = createPrivateKey(deps.privateKey)
  const publicKey = createPublicKey(privateKey)
  const algorithm = privateKey.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'
  const kid = keyId(publicKey)
  // Caches verified signatures only; bound objects are read each time.
  const verified = new LRUCache<string, Grant>({ max: maxCached })

  const grantOf = async (token: string, signal: AbortSignal): Promise<Grant | undefined> => {
    const key = hash('sha256', token, 'base64')
    const known = verified.get(key)
    if (known !== undefined) return known
    try {
      const { payload } = await jwtVerify(token, publicKey, {
        algorithms: [algorithm],
        currentDate: new Date(clock.now()),
      })
      const grant = tryGrant(payload)
      if (grant !== undefined) verified.set(key, grant)
      return grant
    } catch {
      signal.throwIfAborted()
      return undefined
    }
  }

  const boundObjectsExist = async (grant: Grant, signal: AbortSignal): Promise<boolean> => {
    const { cluster, namespace, serviceAccount, pod, secret, node } = grant
    const exists = async (
      resource: Parameters<FindBoundObject>[1]['resource'],
      named: NameAndUid,
    ): Promise<boolean> => {
      const place = { resource, namespace: resource === 'nodes' ? '' : namespace, name: named.name }
      const found = await find(cluster, place, signal)
      if (found === undefined || found.uid !== named.uid) return false
      return found.deletedMs === undefined || clock.now() < found.deletedMs + leewayMs
    }
    if (!(await exists('serviceaccounts', serviceAccount))) return false
    if (pod !== undefined) return exists('pods', pod)
    if (secret !== undefined) return exists('secrets', secret)
    return node === undefined || exists('nodes', node)
  }

  return {
    algorithm,
    issue: ({ cluster, namespace, serviceAccount, audiences, expirationSeconds, ...bound }) => {
      const nowSeconds = Math.floor(clock.now() / 1000)
      return new SignJWT({ 'kubernetes.io': { namespace, serviceaccount: serviceAccount, ...bound } })
        .setProtectedHeader({ alg: algorithm, kid })
        .setIssuer(issuerOf(cluster))
        .setSubject(userName(namespace, serviceAccount.name))
        .setAudience([...audiences])
        .setIssuedAt(nowSeconds)
        .setNotBefore(nowSeconds)
        .setExpirationTime(nowSeconds + expirationSeconds)
        .setJti(randomUUID())
        .sign(privateKey)
    },
    hasOurIssuer: (token) => clusterOf(token) !== undefined,
    issuedFor: clusterOf,
    verify: async (token, wanted, signal) => {
      const claimed = clusterOf(token)
      if (claimed === undefined || (wanted !== undefined && claimed !== wanted)) return undefined
      const cluster = directory.byId(claimed)
      if (cluster === undefined) return undefined
      const grant = await grantOf(token, signal)
      if (grant === undefined || clock.now() >= grant.expiresMs) return undefined
      if (!(await boundObjectsExist(grant, signal))) return undefined
      return { user: userOf(grant), cluster, audiences: grant.audiences }
    },
    keys: async () => ({ keys: [{ ...(await exportJWK(publicKey)), use: 'sig', kid, alg: algorithm }] }),
  }
}

/** The claims of a verified token. */
type Grant = Omit<TokenGrant, 'expirationSeconds'> & { readonly expiresMs: number; readonly jti: string | undefined }

/** The logical cluster in the issuer of an unverified token; undefined if kcp is not the issuer. */
function clusterOf(token: string): ClusterId | undefined {
  if (token.length > maxTokenLength) return undefined
  try {
    return issuedFor(decodeJwt(token))
  } catch {
    return undefined
  }
}

function issuedFor({ iss }: JWTPayload): ClusterId | undefined {
  return iss?.startsWith(issuerPrefix) === true ? tryClusterId(iss.slice(issuerPrefix.length)) : undefined
}

function tryGrant(payload: JWTPayload): Grant | undefined {
  const { exp, aud, jti } = payload
  const cluster = issuedFor(payload)
  const own = payload['kubernetes.io'] as JsonValue | undefined
  if (cluster === undefined || exp === undefined || !isJsonObject(own)) return undefined
  const { namespace, serviceaccount, pod, secret, node } = own
  const serviceAccount = tryNamed(serviceaccount)
  if (typeof namespace !== 'string' || serviceAccount === undefined) return undefined
  const bound = Object.entries({ pod: tryNamed(pod), secret: tryNamed(secret), node: tryNamed(node) })
  return {
    cluster,
    namespace,
    serviceAccount,
    audiences: typeof aud === 'string' ? [aud] : (aud ?? []),
    expiresMs: exp * 1000,
    jti,
    ...Object.fromEntries(bound.filter(([, named]) => named !== undefined)),
  }
}

function tryNamed(value: JsonValue | undefined): NameAndUid | undefined {
  if (!isJsonObject(value)) return undefined
  const { name, uid } = value
  return typeof name === 'string' && typeof uid === 'string' ? { name, uid } : undefined
}

function userOf({ cluster, namespace, serviceAccount, pod, node, jti }: Grant): UserInfo {
  const extra: Record<string, readonly string[]> = {}
  const add = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== '') extra[`authentication.kubernetes.io/${name}`] = [value]
  }
  add('credential-id', jti === undefined ? undefined : `JTI=${jti}`)
  add('node-name', node?.name)
  add('node-uid', node?.uid)
  add('pod-name', pod?.name)
  add('pod-uid', pod?.uid)
  return {
    name: userName(namespace, serviceAccount.name),
    uid: serviceAccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra,
    realm: { kind: 'cluster', id: cluster },
  }
}

function userName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`
}

/** The key id as in kube-apiserver: the hash of the public key. */
function keyId(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
}

/**
 * Returns a function that finds the object that a token is bound to. It decodes an object only if the object may be
 * terminating.
 */
export function findBoundObject(watchCache: WatchCache): FindBoundObject {
  return async (cluster, { resource, namespace, name }, signal) => {
    const objects = await watchCache.cluster(cluster, { signal })
    const entry = objects.get(resource, namespace, name)
    if (entry === undefined) return undefined
    const { uid } = entry.facts
    if (!Buffer.from(entry.bytes.buffer, entry.bytes.byteOffset, entry.bytes.length).includes('"deletionTimestamp"'))
      return { uid }
    const { deletionTimestamp } = decodeMetadata(entry.bytes)
    return deletionTimestamp === undefined ? { uid } : { uid, deletedMs: Date.parse(deletionTimestamp) }
  }
}
