// The begin of a session, by a sign-in link or by a bearer token.
import { decodeJwt } from 'jose'
import { tryClusterName, type ClusterId } from '#apimachinery/meta/index.ts'
import { requestEntityTooLarge, tooManyRequests, unauthorized } from '#apimachinery/status/index.ts'
import { clusterOfToken } from '#virtualapi/auth/authn/claimed-cluster.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'
import type { IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import type { EndedRecord } from './ended-record.ts'
import { readCredentials } from './read-credentials.ts'
import { maxSealedLength, type Session, type SessionIdentity, type Sessions } from './session.ts'
import type { SessionUsers } from './session-users.ts'

interface SignInDependencies {
  readonly directory: ClusterDirectory
  readonly sessions: Sessions
  readonly users: SessionUsers
  readonly ended: EndedRecord
}

/** How many sign-ins are under way at a time. */
const maxAtOnce = 64

export interface Begun {
  readonly session: Session
  readonly user: UserInfo
  /** The text of the session's cookie. */
  readonly sealed: string
}

export class SignIn {
  readonly #dependencies: SignInDependencies
  #underWay = 0

  constructor(dependencies: SignInDependencies) {
    this.#dependencies = dependencies
  }

  /** Rejects with 401 if the credentials of the body are not valid, in the same way whatever is wrong with them. */
  async begin(request: IncomingRequest): Promise<Begun> {
    if (this.#underWay >= maxAtOnce) throw tooManyRequests('too many sign-ins at a time, please try again')
    this.#underWay++
    try {
      const credentials = await readCredentials(request)
      return 'ticket' in credentials
        ? await this.#byTicket(credentials.ticket, request)
        : await this.#byToken(credentials, request)
    } finally {
      this.#underWay--
    }
  }

  async #byTicket(text: string, request: IncomingRequest): Promise<Begun> {
    const { sessions, ended } = this.#dependencies
    const ticket = await sessions.openTicket(text)
    if (ticket === undefined || !(await ended.use(ticket, request.signal)))
      throw unauthorized('this link was used already, or is older than five minutes: kcp console prints a new one')
    return await this.#begun(sessions.begin(ticket.identity), request)
  }

  async #byToken(
    { token, cluster }: { readonly token: string; readonly cluster: string | undefined },
    request: IncomingRequest,
  ): Promise<Begun> {
    const identity = this.#identityOf(token, cluster)
    return await this.#begun(this.#dependencies.sessions.begin(identity, { endsMs: endOf(token) }), request)
  }

  async #begun(session: Session, { peerAddress, signal }: IncomingRequest): Promise<Begun> {
    const { sessions, users } = this.#dependencies
    const sealed = await sessions.seal(session)
    if (sealed.length > maxSealedLength)
      throw requestEntityTooLarge('this token is too long for a cookie, in which the session keeps it')
    return { session, user: await users.userOf(session, { source: peerAddress?.() ?? '', signal }), sealed }
  }

  /** Which authentication the token is for, by what it says of itself; it is verified afterwards. */
  #identityOf(token: string, name: string | undefined): SessionIdentity {
    if (!/^[\w.~+/-]+=*$/.test(token)) throw unauthorized()
    const id = this.#clusterOf(token, name)
    return id === undefined ? { as: 'hostToken', token } : { as: 'token', cluster: id, token }
  }

  #clusterOf(token: string, name: string | undefined): ClusterId | undefined {
    if (name === undefined) return clusterOfToken(`Bearer ${token}`)
    const cluster = tryClusterName(name)
    const found = cluster === undefined ? undefined : this.#dependencies.directory.byName(cluster)
    if (found === undefined) throw unauthorized()
    return found.id
  }
}

/** When the token expires by what it says of itself, milliseconds since 1970; Infinity if it does not say. */
function endOf(token: string): number {
  try {
    const { exp } = decodeJwt(token)
    return exp === undefined ? Infinity : exp * 1000
  } catch {
    return Infinity
  }
}
