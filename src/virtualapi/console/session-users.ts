// The user of a session: for an admin the identity in the session; for a token what the token is good for now, found by
// the authentication of every other request.
import { unauthorized } from '#apimachinery/status/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import { adminOf, type Session, type SessionIdentity } from './session.ts'

/** Reviews tokens of the host. Absent where there is no host. */
export interface HostUsers {
  /** The user of a token of the host; undefined if the host does not accept the token. */
  userOf(token: string, signal: AbortSignal): Promise<UserInfo | undefined>
}

export class SessionUsers {
  readonly #dependencies: Pick<ServerDependencies, 'authenticator' | 'directory'>
  readonly #hostUsers: HostUsers | undefined
  // The same object for every request: caches of authorization find their entries by it.
  readonly #admins = new WeakMap<Session, UserInfo>()

  constructor(dependencies: Pick<ServerDependencies, 'authenticator' | 'directory'>, hostUsers: HostUsers | undefined) {
    this.#dependencies = dependencies
    this.#hostUsers = hostUsers
  }

  /** Rejects with 401 if the credentials of the session, or its logical cluster, are not valid any more. */
  async userOf(session: Session, source: string, signal: AbortSignal): Promise<UserInfo> {
    const { identity } = session
    if (identity.as === 'token') return await this.#userOfToken(identity, source, signal)
    if (identity.as === 'hostToken') return await this.#userOfHost(identity.token, signal)
    if (identity.as === 'clusterAdmin') this.#clusterOf(identity.cluster)
    let user = this.#admins.get(session)
    if (user === undefined) this.#admins.set(session, (user = adminOf(session, identity)))
    return user
  }

  async #userOfToken(
    { cluster: id, token }: SessionIdentity & { as: 'token' },
    peerAddress: string,
    signal: AbortSignal,
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

  async #userOfHost(token: string, signal: AbortSignal): Promise<UserInfo> {
    const user = await this.#hostUsers?.userOf(token, signal)
    if (user === undefined) throw unauthorized()
    return user
  }

  #clusterOf(id: ClusterId) {
    const cluster = this.#dependencies.directory.byId(id)
    if (cluster === undefined) throw unauthorized()
    return cluster
  }
}
