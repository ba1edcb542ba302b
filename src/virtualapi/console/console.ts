// The console: the page, its sessions, and the Kubernetes API for the page below /console/k8s. A request of a session
// runs through the same stages as any other; only the authentication is that of the session.
import { methodNotServed, pageNotFound, serviceUnavailable, unauthorized } from '#apimachinery/status/index.ts'
import { rootClusterName } from '#apimachinery/meta/index.ts'
import { childSignal } from '#async/index.ts'
import type { KubeClient, Transport } from '#client/index.ts'
import type { UsageHistory } from '#crds/index.ts'
import { errorResponse } from '#virtualapi/codec/responses.ts'
import { auditAnswer } from '#virtualapi/request/audit-answer.ts'
import { headerOf, type BytesResponse, type IncomingRequest, type PushResponse } from '#virtualapi/request/exchange.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { ConsoleDoor, UpgradeVerdict } from '#virtualapi/server/console-door.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import { handle, toStatusError, type Handled } from '#virtualapi/server/handle.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import { apiHeaders, apiUrl, harmlessAnswer } from './api-request.ts'
import { ClusterList } from './cluster-list.ts'
import { cookieOf, endedCookie, sealedSession } from './cookie.ts'
import { EndedRecord } from './ended-record.ts'
import { hostViewPath, readHost, requireHostView } from './host-view.ts'
import { LiveSessions } from './live-sessions.ts'
import { inert, ownHeaders, PageFiles, plain } from './page-files.ts'
import {
  originsOf,
  requireFetched,
  requireOwnHost,
  requireOwnRead,
  requireOwnUpgrade,
  requireOwnWrite,
  type Origins,
} from './same-origin.ts'
import { renewAfterMs, Sessions, type Session } from './session.ts'
import { SessionUsers, type HostUsers } from './session-users.ts'
import { SignIn } from './sign-in.ts'
import { UsageList } from './usage-list.ts'

export interface ConsoleOptions {
  /** The key that seals sessions: the same in all processes of the installation. */
  readonly key: Uint8Array
  /** Origins of the console besides the addresses of this server, such as that of an Ingress. */
  readonly origins: readonly string[]
  /** Host names of this server. */
  readonly hosts: readonly string[]
  /** The API with the LogicalClusters and, in `namespace`, the record of ended sessions. */
  readonly client: KubeClient
  readonly namespace: string
  readonly hostUsers?: HostUsers
  /** The rows of usage; absent: none are kept. */
  readonly usage?: Pick<UsageHistory, 'of'>
  /** The host, whose LogicalClusters and MemberClusters admins may read. Absent: they are in the logical cluster `root`. */
  readonly host?: Transport
  /** The folder of the page. Default: where the build leaves it. */
  readonly files?: string
  readonly signal: AbortSignal
}

/** How long a request waits for the first read of the record of ended sessions, milliseconds. */
const maxRecordMs = 5000

/** A session that counts for a request, and the cookie that renews it, if it is time. */
interface Admission {
  readonly session: Session
  readonly user: UserInfo
  readonly setCookie: string | undefined
}

/** A request of a session that is being answered. */
interface Entered {
  /** Aborts with the session, and with the request. */
  readonly signal: AbortSignal
  /** Called when the session ends. */
  readonly ends: Set<() => void>
  readonly leave: () => void
}

export class Console implements ConsoleDoor, AsyncDisposable {
  readonly #dependencies: ServerDependencies
  readonly #origins: Origins
  readonly #files: PageFiles
  readonly #sessions: Sessions
  readonly #users: SessionUsers
  readonly #ended: EndedRecord
  readonly #live: LiveSessions
  readonly #signIn: SignIn
  readonly #clusters: ClusterList
  readonly #usage: UsageList
  readonly #host: Transport | undefined

  constructor(dependencies: ServerDependencies, options: ConsoleOptions) {
    const { key, client, namespace, hostUsers, signal } = options
    const { clock, log } = dependencies
    this.#dependencies = dependencies
    this.#host = options.host
    this.#origins = originsOf(options.origins, options.hosts)
    this.#files = new PageFiles(options.files)
    this.#sessions = new Sessions({ key, clock })
    this.#users = new SessionUsers(dependencies, hostUsers)
    this.#live = new LiveSessions({ clock })
    const onEnded = (isOver: (session: Session) => boolean): void => this.#live.end(isOver)
    this.#ended = new EndedRecord({ client, namespace, clock, log, signal, onEnded })
    const { directory } = dependencies
    this.#signIn = new SignIn({ directory, sessions: this.#sessions, users: this.#users, ended: this.#ended })
    this.#clusters = new ClusterList(dependencies, client, this.#users)
    this.#usage = new UsageList({ history: options.usage, clock })
  }

  async handle(request: IncomingRequest): Promise<Handled> {
    const path = pathOf(request)
    if (path !== '/console' && !path.startsWith('/console/')) return await handle(request, this.#dependencies)
    try {
      if (request.isForwarded !== true) requireOwnHost(request.rawHeaders, this.#origins)
      if (path.startsWith('/console/k8s/')) return await this.#api(request)
      if (path.startsWith('/console/api/')) return whole(await this.#own(request, path))
      return whole(this.#page(request, path))
    } catch (error) {
      return whole(this.#refusal(request, error))
    }
  }

  async upgrade(request: IncomingRequest): Promise<UpgradeVerdict> {
    try {
      if (request.isForwarded !== true) {
        requireOwnHost(request.rawHeaders, this.#origins)
        requireOwnUpgrade(request.rawHeaders, this.#origins)
      }
      const admission = await this.#admit(request)
      const inner = this.#apiRequest(request, admission)
      const { signal, leave } = await this.#enter(admission.session, request.signal)
      return { admitted: { ...inner, signal }, finish: leave }
    } catch (error) {
      return { refused: this.#refusal(request, error) }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#live[Symbol.dispose]()
    this.#usage[Symbol.dispose]()
    await this.#ended[Symbol.asyncDispose]()
  }

  #page(request: IncomingRequest, path: string): BytesResponse {
    if (!isRead(request)) throw methodNotServed()
    if (path === '/console') {
      const moved = plain(308, 'The console is at /console/.\n')
      return { ...moved, headers: { ...moved.headers, location: '/console/' } }
    }
    if (path === '/console/') return this.#files.index()
    const name = path.startsWith('/console/assets/') ? path.slice('/console/assets/'.length) : ''
    const asset = this.#files.asset(name, headerOf(request.rawHeaders, 'accept-encoding') ?? '')
    return asset ?? plain(404, 'There is no such page: the console begins at /console/.\n')
  }

  /** The paths below /console/api. */
  async #own(request: IncomingRequest, path: string): Promise<BytesResponse> {
    if (isRead(request)) requireOwnRead(request.rawHeaders)
    else requireOwnWrite(request.rawHeaders, this.#origins)
    switch (`${request.method} ${path}`) {
      case 'GET /console/api/session':
        return await this.#showSession(request)
      case 'POST /console/api/session':
        return await this.#beginSession(request)
      case 'DELETE /console/api/session':
        return await this.#endSession(request)
      case 'GET /console/api/clusters': {
        const admission = await this.#admit(request)
        return json(200, await this.#clusters.seenBy(admission, request.signal), admission.setCookie)
      }
      case 'GET /console/api/usage': {
        const admission = await this.#admit(request)
        const name = new URLSearchParams(request.url.split('?')[1]).get('cluster') ?? ''
        const cluster = await this.#clusters.find(name, admission, request.signal)
        return json(200, await this.#usage.of(name, cluster), admission.setCookie)
      }
      default:
        throw pageNotFound()
    }
  }

  async #showSession(request: IncomingRequest): Promise<BytesResponse> {
    const { session, user, setCookie } = await this.#admit(request)
    return json(200, this.#shown(session, user), setCookie)
  }

  async #beginSession(request: IncomingRequest): Promise<BytesResponse> {
    const before = await this.#opened(request)
    const { session, user, sealed } = await this.#signIn.begin(request)
    // The browser has one session: a copy of its former cookie is worthless from now on.
    if (before !== undefined) await this.#end(before, request.signal)
    this.#auditOwn(request, { status: 201, user })
    return json(201, this.#shown(session, user), cookieOf(sealed))
  }

  async #endSession(request: IncomingRequest): Promise<BytesResponse> {
    const session = await this.#opened(request)
    if (session !== undefined) {
      const user = await this.#users.userOf(session, { signal: request.signal }).catch(() => undefined)
      await this.#end(session, request.signal)
      this.#auditOwn(request, { status: 200, user })
    }
    return json(200, {}, endedCookie)
  }

  async #end(session: Session, signal: AbortSignal): Promise<void> {
    await this.#ended.end(session, signal)
    this.#live.end(({ id }) => id === session.id)
  }

  async #api(request: IncomingRequest): Promise<Handled> {
    const { isForwarded = false, rawHeaders } = request
    if (!isForwarded) {
      requireFetched(rawHeaders)
      if (isRead(request)) requireOwnRead(rawHeaders)
      else requireOwnWrite(rawHeaders, this.#origins)
    }
    const admission = await this.#admit(request)
    if (this.#host !== undefined && pathOf(request).startsWith(`/console/${hostViewPath}/`))
      return await this.#hostView(this.#host, request, admission)
    const inner = this.#apiRequest(request, admission)
    const { signal, ends, leave } = await this.#enter(admission.session, request.signal)
    const { answer, finish } = await handle({ ...inner, signal }, this.#dependencies)
    const finishBoth = (): void => {
      leave()
      finish()
    }
    if (answer.kind === 'forward') return { answer, finish: finishBoth }
    const shown = harmlessAnswer(answer, admission.setCookie)
    return { answer: shown.kind === 'push' ? endedWith(shown, ends) : shown, finish: finishBoth }
  }

  async #hostView(
    host: Transport,
    request: IncomingRequest,
    { session, user, setCookie }: Admission,
  ): Promise<Handled> {
    requireHostView(request, user)
    const { signal, leave } = await this.#enter(session, request.signal)
    try {
      const answer = await readHost(host, request, signal)
      this.#auditOwn(request, { status: answer.status, user })
      return { answer: harmlessAnswer(answer, setCookie), finish: leave }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Makes a request end with its session. Call `leave` when the request has ended. */
  async #enter(session: Session, until: AbortSignal): Promise<Entered> {
    const ends = new Set<() => void>()
    const life = childSignal(until)
    const forget = this.#live.enter(session, () => {
      life.abort(unauthorized())
      for (const end of ends) end()
    })
    const leave = (): void => {
      forget()
      life[Symbol.dispose]()
    }
    try {
      // The session may have ended while its user was looked up.
      if (await this.#ended.isEnded(session, until)) throw unauthorized()
      return { signal: life.signal, ends, leave }
    } catch (error) {
      leave()
      throw error
    }
  }

  #apiRequest(request: IncomingRequest, { session, user }: Admission): IncomingRequest {
    const { url, rawHeaders, isForwarded = false } = request
    const only = user.realm.kind === 'cluster' ? this.#dependencies.directory.byId(user.realm.id)?.name : undefined
    return {
      ...request,
      url: apiUrl(url, only),
      rawHeaders: apiHeaders(rawHeaders, { isForwarded }),
      peerCertificate: undefined,
      received: { url, rawHeaders },
      session: this.#users.requestSession(session, user),
    }
  }

  /** The session of the request, with its user. Rejects with 401 without a session that counts. */
  async #admit(request: IncomingRequest): Promise<Admission> {
    const session = await this.#opened(request)
    if (session === undefined) throw unauthorized('sign in first: the session is over or was never begun')
    const user = await this.#users.userOf(session, { signal: request.signal })
    const isDue = this.#dependencies.clock.now() - session.usedMs > renewAfterMs
    const setCookie = isDue ? cookieOf(await this.#sessions.seal(this.#sessions.used(session))) : undefined
    return { session, user, setCookie }
  }

  /** The session of the request's cookie; undefined if there is none or it is over. */
  async #opened({ rawHeaders, signal }: IncomingRequest): Promise<Session | undefined> {
    const sealed = sealedSession(rawHeaders)
    const session = sealed === undefined ? undefined : await this.#sessions.open(sealed)
    if (session === undefined) return undefined
    using limited = childSignal(signal)
    const late = serviceUnavailable('the record of ended sessions cannot be read, please try again')
    const timer = setTimeout(() => limited.abort(late), maxRecordMs)
    try {
      return (await this.#ended.isEnded(session, limited.signal)) ? undefined : session
    } finally {
      clearTimeout(timer)
    }
  }

  #shown(session: Session, { name, groups, realm }: UserInfo): object {
    const cluster = realm.kind === 'cluster' ? this.#dependencies.directory.byId(realm.id)?.name : undefined
    const shownRealm = realm.kind === 'cluster' ? { cluster } : realm.kind
    const expires = new Date(session.endsMs).toISOString()
    return { user: name, groups, realm: shownRealm, expires, ...this.#homeOf(realm) }
  }

  /** Where the page finds LogicalClusters and MemberClusters; nothing if the session may not see them. */
  #homeOf({ kind }: UserInfo['realm']): { home?: string } {
    if (kind !== 'installation') return {}
    return { home: this.#host === undefined ? `k8s/clusters/${rootClusterName}` : hostViewPath }
  }

  #refusal(request: IncomingRequest, error: unknown): BytesResponse {
    const failure = toStatusError(error, new Exchange(request), this.#dependencies)
    const path = pathOf(request)
    if (path.startsWith('/console/k8s/') || path.startsWith('/console/api/'))
      this.#auditOwn(request, { status: failure.code, user: undefined })
    return asOwn(errorResponse(failure))
  }

  #auditOwn(request: IncomingRequest, answered: { status: number; user: UserInfo | undefined }): void {
    auditAnswer(request, answered, this.#dependencies)
  }
}

function pathOf({ url }: IncomingRequest): string {
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

function isRead({ method }: IncomingRequest): boolean {
  return method === 'GET' || method === 'HEAD'
}

function whole(answer: BytesResponse): Handled {
  return { answer, finish: () => undefined }
}

function json(status: number, value: unknown, setCookie?: string): BytesResponse {
  const headers = { 'content-type': 'application/json', ...(setCookie !== undefined && { 'set-cookie': setCookie }) }
  return asOwn({ kind: 'bytes', status, headers, body: Buffer.from(`${JSON.stringify(value)}\n`) })
}

function asOwn(answer: BytesResponse): BytesResponse {
  const headers = { ...answer.headers, ...ownHeaders, 'content-security-policy': inert, 'cache-control': 'no-store' }
  return { ...answer, headers }
}

/** The push, which ends when one of `ends` is called. */
function endedWith(answer: PushResponse, ends: Set<() => void>): PushResponse {
  return {
    ...answer,
    begin: (sink) => {
      const push = answer.begin(sink)
      ends.add(() => push.end())
      return push
    },
  }
}
