// The user of a session: for an admin the identity in the session; for a token what the token is good for now, found by
// the authentication of every other request.
import { forbidden, unauthorized } from '#apimachinery/status/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'
import type { RequestSession } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import { adminOf, type Session, type SessionIdentity } from './session.ts'

/** Who asks for the user of a token. */
export interface Asking {
  /** The address of a client that signs in, by which invalid tokens are counted. Absent: a session, whose token was valid. */
  readonly source?: string
  readonly signal: AbortSignal
}

/** Asks the host about its users. Absent where there is no host. */
export interface HostUsers {
  /** The user of a token of the host; undefined if the host does not accept the token. */
  userOf(token: string, asking: Asking): Promise<UserInfo | undefined>
  /**
   * Whether the host lets the user of the token use this verb on the path of a logical cluster, as the host's own API
   * endpoint decides it.
   */
  mayReach(
    token: string,
    place: { readonly name: string; readonly verb: string },
    signal: AbortSignal,
  ): Promise<boolean>
}

const proxies = { group: 'virtual.kcp.dev', resource: 'logicalclusters/proxy' }
/** The verbs by which the host's API server authorizes methods on the path of a logical cluster. */
const hostVerbs: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}
/** How many logical clusters a user of the host may read at once. */
const maxScope = 200

export class SessionUsers {
  readonly #dependencies: Pick<ServerDependencies, 'authenticator' | 'authorizer' | 'directory'>
  readonly #hostUsers: HostUsers | undefined
  // The same object for every request: caches of authorization find their entries by it.
  readonly #admins = new WeakMap<Session, UserInfo>()

  constructor(
    dependencies: Pick<ServerDependencies, 'authenticator' | 'authorizer' | 'directory'>,
    hostUsers: HostUsers | undefined,
  ) {
    this.#dependencies = dependencies
    this.#hostUsers = hostUsers
  }

  /** Rejects with 401 if the credentials of the session, or its logical cluster, are not valid any more. */
  async userOf(session: Session, asking: Asking): Promise<UserInfo> {
    const { identity } = session
    if (identity.as === 'token') return await this.#userOfToken(identity, asking)
    if (identity.as === 'hostToken') return await this.#userOfHost(identity.token, asking)
    if (identity.as === 'clusterAdmin') this.#clusterOf(identity.cluster)
    let user = this.#admins.get(session)
    if (user === undefined) this.#admins.set(session, (user = adminOf(session, identity)))
    return user
  }

  /** The session as the stages get it. A user of the host also needs the host's permission, as through its API endpoint. */
  requestSession({ identity }: Session, user: UserInfo): RequestSession {
    const hostUsers = this.#hostUsers
    if (identity.as !== 'hostToken' || hostUsers === undefined) return { user }
    const { token } = identity
    return {
      user,
      requireAdmitted: async (info, signal) => {
        const { cluster } = info
        const verb = hostVerbs[info.method] ?? info.method.toLowerCase()
        if (cluster.kind === 'one' && !(await hostUsers.mayReach(token, { name: cluster.name, verb }, signal)))
          throw forbidden(proxies, cluster.name, `the host does not let ${JSON.stringify(user.name)} ${verb} it`)
      },
      scope: async (signal) => new Set((await this.reachable(token, user, signal)).map(({ id }) => id)),
    }
  }

  /** The logical clusters that the user of the host owns and may reach. Rejects with 403 if there are too many. */
  async reachable(token: string, user: UserInfo, signal: AbortSignal): Promise<readonly LogicalCluster[]> {
    const { directory, authorizer } = this.#dependencies
    const owned = [...directory.all()].filter((cluster) => authorizer.isSuperuser(user, cluster))
    if (owned.length > maxScope)
      throw forbidden(proxies, '', `more than ${maxScope} logical clusters at once: read them one by one`)
    const admitted = await Promise.all(
      owned.map(async ({ name }) => await this.#hostUsers?.mayReach(token, { name, verb: 'get' }, signal)),
    )
    return owned.filter((_, i) => admitted[i] === true)
  }

  async #userOfToken(
    { cluster: id, token }: SessionIdentity & { as: 'token' },
    // Invalid tokens of sessions are counted for their logical cluster.
    { source: peerAddress = id, signal }: Asking,
  ): Promise<UserInfo> {
    const cluster = this.#clusterOf(id)
    const info: RequestInfo = {
      entryPoint: 'direct',
      cluster: { kind: 'one', name: cluster.name },
      verb: 'get',
      method: 'GET',
      target: { kind: 'path', path: '/console' },
      query: new URLSearchParams(),
      basePath: '',
    }
    const rawHeaders = ['authorization', `Bearer ${token}`]
    const asked = { info, rawHeaders, peerCertificate: undefined, peerAddress, cluster }
    const found = await this.#dependencies.authenticator.authenticate(asked, signal)
    if (found === undefined) throw unauthorized()
    return found.user
  }

  async #userOfHost(token: string, asking: Asking): Promise<UserInfo> {
    const user = await this.#hostUsers?.userOf(token, asking)
    if (user === undefined) throw unauthorized()
    return user
  }

  #clusterOf(id: ClusterId) {
    const cluster = this.#dependencies.directory.byId(id)
    if (cluster === undefined) throw unauthorized()
    return cluster
  }
}
