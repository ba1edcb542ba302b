// `/services/agent/MEMBER/...`: certificates of agents, the tunnel of an agent, and connections of our other processes through it.
import {
  badRequest,
  isStatusError,
  notAcceptable,
  pageNotFound,
  serviceUnavailable,
  unauthorized,
} from '#apimachinery/status/index.ts'
import { connectionProtocol } from '#client/member/index.ts'
import type { TunnelRefusal } from '#crds/index.ts'
import {
  choiceHeaders,
  chooseVersion,
  readOffer,
  sessionKinds,
  type SessionKind,
  type TunnelOffer,
  tunnelVersions,
} from '#network/tunnel/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { errorResponse } from '#virtualapi/codec/responses.ts'
import { forbiddenError } from '#virtualapi/auth/authz/index.ts'
import { agentsOrganization } from '#virtualapi/auth/authn/index.ts'
import { auditAnswer } from '#virtualapi/request/audit-answer.ts'
import { Exchange, headerOf, type BytesResponse, type IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Peer } from '#virtualapi/request/ownership.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import type { AgentDoor } from '#virtualapi/server/agent-door.ts'
import type { ServerDependencies } from '#virtualapi/server/dependencies.ts'
import { forwardUpgrade } from '#virtualapi/server/forward-upgrade.ts'
import { toStatusError, type Handled } from '#virtualapi/server/handle.ts'
import { writeResponse, type UpgradeRequest } from '#virtualapi/server/upgrade.ts'
import { hasHopHeader } from '#virtualapi/server/wire/hop-headers.ts'
import { pipeSockets } from '#network/sockets/index.ts'
import { acceptTunnel, requireHandshake } from '#virtualapi/server/wire/web-socket.ts'
import type { Enrolment } from './enrolment.ts'
import type { AgentIdentity } from './identity.ts'
import type { AgentRegistry } from './registry.ts'
import type { TunnelReports } from './tunnel-reports.ts'
import { updateAdvice, type Tunnels } from './tunnels.ts'

interface Asked {
  readonly member: string
  readonly what: string
  readonly query: URLSearchParams
}

interface AgentEndpointsOptions {
  readonly tunnels: Tunnels
  readonly registry: AgentRegistry
  readonly enrolment: Enrolment
  readonly reports: TunnelReports
}

export class AgentEndpoints implements AgentDoor, Disposable {
  readonly #dependencies: ServerDependencies
  readonly #tunnels: Tunnels
  readonly #registry: AgentRegistry
  readonly #enrolment: Enrolment
  readonly #reports: TunnelReports
  readonly #unsubscribe: () => void

  constructor(dependencies: ServerDependencies, { tunnels, registry, enrolment, reports }: AgentEndpointsOptions) {
    this.#dependencies = dependencies
    this.#tunnels = tunnels
    this.#registry = registry
    this.#enrolment = enrolment
    this.#reports = reports
    this.#unsubscribe = registry.onRevoked(() => tunnels.end((agent) => !registry.isValid(agent)))
  }

  async handle(request: IncomingRequest): Promise<Handled> {
    const asked = parse(request.url)
    let answer: BytesResponse
    try {
      // Other processes pass tunnels on, and nothing else.
      if (asked?.what !== 'certificate' || request.isForwarded === true) throw pageNotFound()
      answer = await this.#enrolment.answer(asked.member, request)
    } catch (error) {
      answer = errorResponse(toStatusError(error, new Exchange(request), this.#dependencies))
    }
    const user = answer.status < 300 && asked !== undefined ? agentUser(asked.member) : undefined
    auditAnswer(request, { status: answer.status, user }, this.#dependencies)
    return { answer, finish: () => undefined }
  }

  async upgrade(upgrading: UpgradeRequest): Promise<void> {
    const { incoming, socket } = upgrading
    socket.on('error', () => undefined)
    try {
      const asked = parse(incoming.url)
      if (asked?.what === 'tunnel') await this.#openTunnel(asked, upgrading)
      else if (asked?.what === 'connection') await this.#connect(asked, upgrading)
      else throw pageNotFound()
    } catch (error) {
      if (!isStatusError(error)) this.#dependencies.log.error('an upgrade for an agent failed', { error })
      writeResponse(socket, errorResponse(isStatusError(error) ? error : serviceUnavailable('try again', error)))
    }
  }

  [Symbol.dispose](): void {
    this.#unsubscribe()
    this.#reports[Symbol.dispose]()
  }

  async #openTunnel({ member, query }: Asked, upgrading: UpgradeRequest): Promise<void> {
    const { incoming, request, socket, head } = upgrading
    const agent = this.#registry.agentOf(incoming)
    // Exactly this name: no prefix and no other spelling of it.
    if (agent?.member !== member) throw unauthorized()
    incoming.known?.()
    const owner = this.#tunnels.otherOwnerOf(agent.uid)
    if (owner !== undefined) {
      await this.#forward(upgrading, owner)
      return
    }
    const header = (name: string): string | undefined => headerOf(incoming.rawHeaders, name)
    requireHandshake(header)
    const kind = kindOf(query)
    const offer = readOffer(header)
    if (offer === undefined) throw badRequest('the versions of the tunnel that the agent speaks cannot be read')
    const version = this.#agreeOn(agent, offer)
    const headers = { [choiceHeaders.version]: String(version), [choiceHeaders.program]: programVersion }
    const webSocket = acceptTunnel(request, socket, { head, headers })
    if (webSocket === undefined) return
    const isNew = !this.#tunnels.isConnected(agent, kind)
    this.#tunnels.add(agent, { kind, offer }, webSocket)
    if (kind === 'control') this.#reports.connected(agent, { offer, version, isNew })
  }

  /** The version of the tunnel. Throws 406, and tells admins, if the agent speaks none of ours. */
  #agreeOn(agent: AgentIdentity, offer: TunnelOffer): number {
    const choice = chooseVersion({ server: tunnelVersions, agent: offer.versions })
    if ('version' in choice) return choice.version
    const refusal = refusalOf(offer, choice.older)
    // While another agent of the member is connected, as in a rollout, nothing is wrong with the member.
    if (!this.#tunnels.isConnected(agent, 'control')) this.#reports.refused(agent, refusal)
    throw notAcceptable(refusal.message)
  }

  async #connect({ member, query }: Asked, { incoming, socket, head }: UpgradeRequest): Promise<void> {
    await this.#requireInstallation(incoming)
    if (headerOf(incoming.rawHeaders, 'upgrade') !== connectionProtocol) throw pageNotFound()
    const wanted = { name: member, uid: query.get('uid') ?? '' }
    const kind = kindOf(query)
    const needs = query.get('needs') ?? undefined
    const remote =
      incoming.isForwarded === true
        ? this.#tunnels.dialHere(wanted, { kind, needs })
        : await this.#tunnels.dial(wanted, kind, needs)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${connectionProtocol}\r\n\r\n`)
    if (head.length > 0) remote.write(head)
    await pipeSockets(socket, remote, { signal: incoming.signal })
  }

  /** Rejects unless one of our own processes asks: the operator by its certificate, a replica by its connection. */
  async #requireInstallation(request: IncomingRequest): Promise<void> {
    const { rawHeaders, peerCertificate, url } = request
    if (request.isForwarded === true && !hasHopHeader(rawHeaders)) return
    const info = parseRequest('GET', url, { hasBearerToken: false })
    const { authenticator, authorizer } = this.#dependencies
    const asked = { info, rawHeaders, peerCertificate, peerAddress: request.peerAddress?.(), cluster: undefined }
    const found = await authenticator.authenticate(asked, request.signal)
    if (found === undefined) throw unauthorized()
    if (!authorizer.mayKnowAll(found.user)) throw forbiddenError(found.user, { verb: 'get', path: '/services/agent' })
    request.known?.()
  }

  async #forward({ incoming, socket, head }: UpgradeRequest, to: Peer): Promise<void> {
    // A request is not passed on twice: for a moment, processes may disagree about the owner.
    if (incoming.isForwarded === true)
      throw serviceUnavailable('another server takes over the tunnel, please try again')
    await forwardUpgrade({ incoming, socket, head, to, signal: incoming.signal }, this.#dependencies)
  }
}

function refusalOf(
  { versions, program = 'an unknown version' }: TunnelOffer,
  older: 'agent' | 'server',
): TunnelRefusal {
  const spoken = `the agent (${program}) speaks version ${versions.join(', ')} of the tunnel, and this installation (${programVersion}) ${tunnelVersions.join(', ')}`
  return older === 'agent'
    ? { reason: 'AgentTooOld', message: `${spoken}: ${updateAdvice}` }
    : { reason: 'AgentTooNew', message: `${spoken}: update the installation, or ${updateAdvice}` }
}

/** An agent in the audit log. */
function agentUser(member: string): UserInfo {
  return { name: `kcp:agent:${member}`, groups: [agentsOrganization], extra: {}, realm: { kind: 'installation' } }
}

/** The parts of `/services/agent/MEMBER/WHAT`; undefined for other paths. A name is never decoded. */
function parse(url: string): Asked | undefined {
  const [path = '', query = ''] = url.split('?', 2)
  const found = /^\/services\/agent\/([a-z0-9][-a-z0-9]{0,62})\/([a-z]+)$/.exec(path)
  if (found === null) return undefined
  return { member: found[1] ?? '', what: found[2] ?? '', query: new URLSearchParams(query) }
}

function kindOf(query: URLSearchParams): SessionKind {
  const kind = sessionKinds.find((one) => one === query.get('session'))
  if (kind === undefined) throw pageNotFound()
  return kind
}
