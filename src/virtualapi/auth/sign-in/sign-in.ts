// Users of identity providers: tokens of the issuers that the installation trusts count in all logical clusters, those of
// a logical cluster's own issuers count there alone. A token is verified once, and remembered for a short time.
import { createHash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { JwtIssuer } from '#crds/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { compileIssuers, type CompiledIssuer, type CompiledIssuers } from './configuration.ts'
import type { SignInUsers } from '#virtualapi/auth/authn/index.ts'
import type { InstallationSignIn } from './configuration-file.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { userOfClaims } from './token-user.ts'

/** Reads a document of an issuer. `cluster`: whose configuration names the issuer; undefined: the installation's. */
export type ReadIssuer = (
  request: { readonly url: string; readonly certificateAuthority?: string; readonly cluster?: LogicalCluster },
  signal: AbortSignal,
) => Promise<string>

export interface SignInOptions {
  /** What the installation trusts now. */
  readonly installation: () => InstallationSignIn
  /** Issuers that are our own: no logical cluster may trust another one under their names. */
  readonly disallowed: readonly string[]
  readonly read: ReadIssuer
  readonly clock: Clock
  readonly log: Logger
  /** Called when the state of the issuers of a logical cluster has changed. Must not throw. */
  readonly onChange?: (cluster: LogicalCluster) => void
}

/** What is known of the issuers in spec.authentication of a logical cluster. */
export interface IssuersState {
  /** Errors of the configuration; with any, none of the issuers counts. */
  readonly causes: readonly StatusCause[]
  /** Issuers whose keys could not be read at the last attempt. */
  readonly unreadable: readonly {
    readonly url: string
    readonly problem: string
    /** Until when the keys that are known count, milliseconds since 1970; absent: none are known. */
    readonly countUntil?: number
  }[]
}

/** Algorithms with a public key: a key that signs with a shared secret would be known to the issuer's clients. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
const maxTokenLength = 16 * 1024
/** How long a verified token is remembered, milliseconds: a withdrawn key counts so long. */
const rememberMs = 10_000
const maxRemembered = 20_000
/** How many issuers of logical clusters have their keys in memory. */
const maxIssuersInMemory = 1000
const maxCompiled = 1000
/** Cost units of CEL for one expression of a tenant's configuration. */
const tenantCostLimit = 100_000

interface Found {
  readonly issuer: CompiledIssuer
  /** Absent: the installation's. */
  readonly cluster?: LogicalCluster
}

export interface SignIn extends SignInUsers {
  stateOf(cluster: LogicalCluster): IssuersState
}

/** The users of identity providers. */
export function createSignIn(options: SignInOptions): SignIn {
  return new IssuedUsers(options)
}

class IssuedUsers implements SignIn {
  readonly #options: SignInOptions
  readonly #keys = new WeakMap<CompiledIssuer, IssuerKeys>()
  readonly #keysOfTenants = new LRUCache<string, IssuerKeys>({ max: maxIssuersInMemory })
  readonly #compiled = new LRUCache<readonly JwtIssuer[], CompiledIssuers>({ max: maxCompiled })
  readonly #verified = new LRUCache<
    string,
    { readonly user: UserInfo; readonly issuer: CompiledIssuer; readonly until: number }
  >({
    max: maxRemembered,
  })

  constructor(options: SignInOptions) {
    this.#options = options
  }

  trusts(token: string, cluster: LogicalCluster | undefined): boolean {
    return this.#find(token, cluster) !== undefined
  }

  allowsAnonymous(path: string): boolean {
    const { anonymous } = this.#options.installation()
    if (anonymous === undefined) return true
    return anonymous.enabled && (anonymous.paths === undefined || anonymous.paths.includes(path))
  }

  stateOf(cluster: LogicalCluster): IssuersState {
    const { issuers, causes } = this.#compile(cluster.authentication ?? [])
    if (causes.length > 0) return { causes, unreadable: [] }
    const unreadable = issuers.flatMap((issuer) => {
      const { problem, countUntil } = this.#keysOfTenants.peek(keyOf(issuer, cluster)) ?? {}
      const { url } = issuer.source.issuer
      return problem === undefined ? [] : [{ url, problem, ...(countUntil !== undefined && { countUntil }) }]
    })
    return { causes, unreadable }
  }

  async userOf(token: string, cluster: LogicalCluster | undefined): Promise<UserInfo | undefined> {
    const found = this.#find(token, cluster)
    if (found === undefined) return undefined
    const { clock, log } = this.#options
    const key = createHash('sha256')
      .update(`${found.cluster?.id ?? ''}\0${token}`)
      .digest('base64')
    const known = this.#verified.get(key)
    if (known !== undefined && known.issuer === found.issuer && clock.now() < known.until) return known.user
    try {
      const { claims, expiresMs } = await this.#verify(token, found)
      const limits = found.cluster === undefined ? {} : { costLimit: tenantCostLimit }
      const mapped = userOfClaims(found.issuer, claims, limits)
      const user = found.cluster === undefined ? installationUser(mapped) : tenantUser(mapped, found.cluster)
      this.#verified.set(key, { user, issuer: found.issuer, until: Math.min(expiresMs, clock.now() + rememberMs) })
      return user
    } catch (error) {
      const { url } = found.issuer.source.issuer
      log.info('a token of an identity provider was refused', { issuer: url, cluster: found.cluster?.name, error })
      return undefined
    }
  }

  #find(token: string, cluster: LogicalCluster | undefined): Found | undefined {
    const ofCluster = cluster?.authentication
    const ofInstallation = this.#options.installation().issuers
    if ((ofInstallation.length === 0 && ofCluster === undefined) || token.length > maxTokenLength) return undefined
    const issuer = issuerIn(token)
    if (issuer === undefined) return undefined
    const matches = (one: CompiledIssuer): boolean => one.source.issuer.url === issuer
    const trusted = ofInstallation.find(matches)
    if (trusted !== undefined) return { issuer: trusted }
    const own = ofCluster === undefined ? undefined : this.#valid(ofCluster).find(matches)
    return own === undefined || cluster === undefined ? undefined : { issuer: own, cluster }
  }

  /** The issuers of a logical cluster; none if its configuration has an error, which its condition tells. */
  #valid(list: readonly JwtIssuer[]): readonly CompiledIssuer[] {
    const { issuers, causes } = this.#compile(list)
    return causes.length === 0 ? issuers : []
  }

  #compile(list: readonly JwtIssuer[]): CompiledIssuers {
    let known = this.#compiled.get(list)
    if (known === undefined) {
      const path = 'spec.authentication.jwt'
      this.#compiled.set(list, (known = compileIssuers(list, { path, disallowed: this.#options.disallowed })))
    }
    return known
  }

  async #verify(token: string, found: Found): Promise<{ claims: JsonObject; expiresMs: number }> {
    const { kid } = decodeProtectedHeader(token)
    const keys = await this.#keysOf(found).forKey(kid)
    const { url, audiences } = found.issuer.source.issuer
    const { payload } = await jwtVerify(token, keys, {
      issuer: url,
      audience: [...audiences],
      algorithms,
      requiredClaims: ['exp'],
      currentDate: new Date(this.#options.clock.now()),
    })
    return { claims: payload as JsonObject, expiresMs: (payload.exp ?? 0) * 1000 }
  }

  #keysOf({ issuer, cluster }: Found): IssuerKeys {
    const { read, clock, onChange } = this.#options
    const { url, discoveryURL, certificateAuthority } = issuer.source.issuer
    const make = (): IssuerKeys =>
      new IssuerKeys({
        ...(cluster && onChange && { onOutcome: () => onChange(cluster) }),
        url,
        ...(discoveryURL && { discoveryURL }),
        read: (document, signal) =>
          read(
            { url: document, ...(certificateAuthority && { certificateAuthority }), ...(cluster && { cluster }) },
            signal,
          ),
        clock,
      })
    if (cluster === undefined) {
      let known = this.#keys.get(issuer)
      if (known === undefined) this.#keys.set(issuer, (known = make()))
      return known
    }
    const key = keyOf(issuer, cluster)
    let known = this.#keysOfTenants.get(key)
    if (known === undefined) this.#keysOfTenants.set(key, (known = make()))
    return known
  }
}

/** The name of an issuer's keys: another logical cluster has its own, with its own authority. */
function keyOf({ source }: CompiledIssuer, { id }: LogicalCluster): string {
  const { url, discoveryURL, certificateAuthority } = source.issuer
  return JSON.stringify([id, url, discoveryURL, certificateAuthority])
}

function issuerIn(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

type Mapped = ReturnType<typeof userOfClaims>

/** As in kube-apiserver, the admin of the installation decides about names and groups. */
function installationUser({ groups, ...user }: Mapped): UserInfo {
  return { ...user, groups: [...new Set([...groups, 'system:authenticated'])], realm: { kind: 'host' } }
}

/** Names with this prefix belong to Kubernetes: no issuer of a tenant gives them. */
const systemPrefix = 'system:'

function tenantUser({ groups, ...user }: Mapped, { id }: LogicalCluster): UserInfo {
  if (user.name.startsWith(systemPrefix)) throw new Error(`"${user.name}" is a name of Kubernetes itself`)
  const own = groups.filter((group) => !group.startsWith(systemPrefix))
  return { ...user, groups: [...new Set([...own, 'system:authenticated'])], realm: { kind: 'cluster', id } }
}
