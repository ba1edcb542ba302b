// The stages of every request, in order. Each stage adds its findings to the Exchange or throws a StatusError.
import { childSignal } from '#async/index.ts'
import type { ClusterName } from '#apimachinery/meta/index.ts'
import { parseFieldSelector } from '#apimachinery/selector/index.ts'
import { badRequest, pathNotFound, serviceUnavailable, timedOut, unauthorized } from '#apimachinery/status/index.ts'
import type { Authentication } from '#virtualapi/auth/authn/authenticator.ts'
import { clusterOfToken } from '#virtualapi/auth/authn/claimed-cluster.ts'
import { anonymous, type UserInfo } from '#virtualapi/request/user-info.ts'
import type { Attributes, Decision } from '#virtualapi/request/authorizer.ts'
import { forbiddenError, isOpenPath } from '#virtualapi/auth/authz/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { dispatch } from '#virtualapi/endpoints/dispatch.ts'
import { isPurge } from '#virtualapi/endpoints/documents/purge.ts'
import { isTrue, parseRequest } from '#virtualapi/request/parse-request.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { Exchange, RequestSession } from '#virtualapi/request/exchange.ts'
import { longSelector, unitsOfSelector } from '#virtualapi/flowcontrol/selector-units.ts'
import { RequestAudit } from '#virtualapi/request/request-audit.ts'
import { auditPath } from '#crds/index.ts'
import { snapshotPath, transferObjectsPath, transferPath } from '#snapshot/index.ts'
import { isAccessRequest } from '#virtualapi/endpoints/documents/access-token.ts'
import { authenticateForMember, enterMember } from './enter-member.ts'
import { enterView } from './enter-view.ts'
import { flowHeaders } from './flow-headers.ts'
import { followMove } from './follow-move.ts'
import { impersonated, impersonationForbidden, wantedIdentity } from './impersonate.ts'
import { own, requireTenure } from './own.ts'
import type { ServerDependencies } from './dependencies.ts'

export type Stage = (exchange: Exchange, dependencies: ServerDependencies) => void | Promise<void>

/** The order matters: limits apply before any work, and authorization before the client learns what exists. */
export const stages: readonly Stage[] = [
  audit,
  parse,
  own,
  auditInClusters,
  setDeadline,
  authenticate,
  beginAudit,
  applyLimits,
  awaitTurn,
  followMove,
  impersonate,
  authorize,
  answer,
]

/** The stages that a trace shows as a step of the request, where they wait for something. */
export const stageSpans: ReadonlyMap<Stage, string> = new Map<Stage, string>([
  [applyLimits, 'Limits'],
  [awaitTurn, 'Turn'],
  [impersonate, 'Impersonation'],
  [authorize, 'Authorization'],
  [answer, 'Answer'],
])

/** Larger bodies, and bodies of unknown length, are received a few at a time: decrypting 1 MiB takes a millisecond. */
const largeBodyBytes = 256 * 1024

/** The stages of an upgrade, which answers on its own socket. */
export const stagesOfUpgrade: readonly Stage[] = stages.slice(0, -1)

/** Starts the audit log of the installation; first, so that refused requests are logged too. */
function audit(exchange: Exchange, dependencies: ServerDependencies): void {
  if (dependencies.auditLog !== undefined) auditOf(exchange, dependencies).to(dependencies.auditLog)
}

/** Adds the logs of the logical cluster and of the provider; the process that owns one of them writes its log. */
function auditInClusters(exchange: Exchange, dependencies: ServerDependencies): void {
  const { cluster, provider } = exchange
  auditIn(cluster, exchange, dependencies)
  if (provider === undefined || dependencies.ownership?.owns(provider.id) === false) return
  auditIn(provider, exchange, dependencies)
}

/** Adds the log of a logical cluster, if it has one. */
function auditIn(cluster: LogicalCluster | undefined, exchange: Exchange, dependencies: ServerDependencies): void {
  if (cluster?.audit === undefined) return
  const log = dependencies.clusterAudits?.logOf(cluster)
  if (log === undefined) return
  const request = auditOf(exchange, dependencies)
  request.to(log)
  request.understood(exchange.info, { longRunning: isLongRunning(exchange.info) })
  request.inCluster(exchange.cluster)
}

function auditOf(exchange: Exchange, { clock }: ServerDependencies): RequestAudit {
  if (exchange.audit !== undefined) return exchange.audit
  const { method, url, peerAddress } = exchange.request
  const { auditId } = exchange
  const header = (name: string): string | undefined => exchange.header(name)
  const request = new RequestAudit({ auditId, method, url, header, peerAddress: peerAddress?.() }, clock)
  exchange.audit = request
  exchange.cleanups.push(() => request.complete())
  return request
}

function parse(exchange: Exchange, dependencies: ServerDependencies): void {
  const { method, url, loopbackUser } = exchange.request
  const authorization = exchange.header('authorization')
  const hasBearerToken = /^bearer /i.test(authorization ?? '')
  const hasOwnToken = (): boolean => clusterOfToken(authorization) !== undefined
  exchange.info = parseRequest(method, url, {
    hasBearerToken,
    hasOwnToken,
    loopback: loopbackUser !== undefined,
    plainCluster: dependencies.plain?.cluster.name,
  })
  const { cluster } = exchange.info
  exchange.audit?.understood(exchange.info, { longRunning: isLongRunning(exchange.info) })
  const find = (name: ClusterName): LogicalCluster | undefined =>
    unlessPurged(dependencies.directory.byName(name), exchange.info, dependencies)
  if (cluster.kind === 'one') exchange.cluster = find(cluster.name)
  if (exchange.info.through !== undefined) exchange.provider = find(exchange.info.through.provider)
  exchange.audit?.inCluster(exchange.cluster)
}

/** A purged logical cluster does not exist any more, except to another purge. */
function unlessPurged(cluster: LogicalCluster | undefined, info: RequestInfo, { watchCache }: ServerDependencies) {
  return cluster !== undefined && watchCache.hasEnded(cluster.id) && !isPurge(info) ? undefined : cluster
}

function setDeadline(exchange: Exchange, { requestTimeoutMs }: ServerDependencies): void {
  if (isLongRunning(exchange.info)) {
    endWithServer(exchange)
    return
  }
  const child = childSignal(exchange.signal)
  const timeoutMs = Math.min(requestTimeoutMs, askedTimeoutMs(exchange.info.query.get('timeout')))
  const timer = setTimeout(
    () => child.abort(timedOut(`the request did not complete within ${timeoutMs / 1000} s`)),
    timeoutMs,
  )
  exchange.signal = child.signal
  exchange.cleanups.push(() => {
    clearTimeout(timer)
    child[Symbol.dispose]()
  })
}

const durationUnits: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

// Sticky, so that matching is linear: the text comes from an unauthenticated client.
const durationPart = /([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)/gy

/** The client's timeout, a Go duration such as `1m30s`; Infinity if absent, zero or negative. Throws 400 if invalid. */
function askedTimeoutMs(text: string | null): number {
  if (text === null || text === '' || text === '0') return Infinity
  const [, sign = '', amounts = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  const parts = [...amounts.matchAll(durationPart)]
  if (amounts === '' || parts.map(([part]) => part).join('') !== amounts) {
    const problem = /^[0-9]+$/.test(amounts) ? 'missing unit in' : 'invalid'
    throw badRequest(`invalid timeout specified in the request URL - time: ${problem} duration ${JSON.stringify(text)}`)
  }
  if (sign === '-') return Infinity
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (durationUnits[unit ?? ''] ?? 0), 0) || Infinity
}

function endWithServer(exchange: Exchange): void {
  const { stopping } = exchange.request
  if (stopping === undefined) return
  const child = childSignal(exchange.signal)
  const stop = (): void => child.abort(stopping.reason)
  if (stopping.aborted) stop()
  else stopping.addEventListener('abort', stop, { once: true })
  exchange.signal = child.signal
  exchange.unlink = () => {
    stopping.removeEventListener('abort', stop)
    child[Symbol.dispose]()
  }
}

/** True for watches, logs, exec, snapshots, followed audit logs and the like, which have no deadline. */
export function isLongRunning({ verb, target, method, query }: RequestInfo): boolean {
  if (verb === 'watch') return true
  if (target.kind === 'path')
    return (
      method === 'GET' &&
      (target.path === snapshotPath ||
        target.path === transferObjectsPath ||
        (target.path === auditPath && isTrue(query.get('follow'))))
    )
  return ['log', 'exec', 'attach', 'portforward', 'proxy'].includes(target.subresource)
}

/** Finds the user of the request. Exported for RequestTrace, whose span begins when the client is known. */
export function authenticate(exchange: Exchange, dependencies: ServerDependencies): Promise<void> | undefined {
  const { rawHeaders, peerCertificate, loopbackUser, session } = exchange.request
  if (loopbackUser !== undefined) {
    exchange.user = loopbackUser
    exchange.audit?.authenticated(loopbackUser)
    return undefined
  }
  if (session !== undefined) return authenticateSession(exchange, session, dependencies)
  if (exchange.info.member !== undefined) return authenticateForMember(exchange, exchange.info.member, dependencies)
  const { info, cluster } = authenticationScope(exchange)
  const peerAddress = exchange.request.peerAddress?.()
  const asked = { info, rawHeaders, peerCertificate, peerAddress, cluster }
  const result = dependencies.authenticator.authenticate(asked, exchange.signal)
  // Most requests come with a certificate that is known already: they need no promise.
  if (result instanceof Promise) return result.then((found) => takeIdentityOf(found, exchange, dependencies))
  takeIdentityOf(result, exchange, dependencies)
  return undefined
}

/** The logical cluster whose credentials count: in the view of an export, that of the export. */
function authenticationScope({ info, cluster, provider }: Exchange): Pick<Exchange, 'info' | 'cluster'> {
  if (info.through === undefined) return { info, cluster }
  return { info: { ...info, cluster: { kind: 'one', name: info.through.provider } }, cluster: provider }
}

/** Takes the user of a browser's session. Throws 403 for requests that no session may make. */
async function authenticateSession(
  exchange: Exchange,
  session: RequestSession,
  dependencies: ServerDependencies,
): Promise<void> {
  const { info, cluster } = exchange
  const { user } = session
  takeIdentityOf({ user }, exchange, dependencies)
  // Before the limits: a session must not spend the budget of another logical cluster.
  const isForeign = user.realm.kind === 'cluster' && user.realm.id !== cluster?.id
  if (isForeign || info.cluster.kind === 'none' || info.through !== undefined)
    throw forbiddenError(user, attributesOf(info))
  const { target } = info
  // What a pod or a Service of a tenant answers would have the origin of the console.
  if (target.kind === 'resource' && target.subresource === 'proxy')
    throw forbiddenError(user, attributesOf(info), 'a browser reaches no proxy of a pod, Service or node this way')
  await session.requireAdmitted?.(info, exchange.signal)
}

function takeIdentityOf(
  result: Authentication | undefined,
  exchange: Exchange,
  dependencies: ServerDependencies,
): void {
  const { info } = exchange
  if (result === undefined && info.entryPoint === 'unprefixed') throw unauthorized()
  exchange.user = result?.user ?? anonymous
  if (exchange.user !== anonymous) exchange.request.known?.()
  if (result?.cluster !== undefined) exchange.cluster = unlessPurged(result.cluster, info, dependencies)
  exchange.audit?.authenticated(exchange.user)
  exchange.audit?.inCluster(exchange.cluster)
  requireTenure(exchange, dependencies)
  if (result?.cluster === undefined || exchange.cluster?.audit === undefined) return
  auditIn(exchange.cluster, exchange, dependencies)
  exchange.audit?.authenticated(exchange.user)
}

/** Asks the logs how much they get of the request. As in kube-apiserver, policies see the user before impersonation. */
function beginAudit(exchange: Exchange): void {
  exchange.audit?.begin(attributesOf(exchange.info))
}

function applyLimits(
  exchange: Exchange,
  { fairness, memoryGuard, subtreeFlow, usageMeter }: ServerDependencies,
): Promise<void> | undefined {
  const { info } = exchange
  // Our own controllers are few and bounded, and all tenants depend on them: they have no limits.
  if (info.entryPoint === 'loopback' || exchange.user.realm.kind === 'installation') return undefined
  const flow = flowOf(exchange)
  const cluster = exchange.provider ?? exchange.cluster
  if (cluster !== undefined && exchange.user !== anonymous) {
    subtreeFlow.request(cluster.id)
    usageMeter?.request(cluster.id)
    if (info.verb === 'watch') {
      exchange.cleanups.push(subtreeFlow.watch(cluster.id))
      if (usageMeter !== undefined) exchange.cleanups.push(usageMeter.watch(cluster.id))
    }
  }
  if (cluster !== undefined && exchange.user === anonymous) {
    // The request is answered as if the logical cluster did not exist: anonymous clients must not learn that it does.
    if (memoryGuard.mustStayUnloaded(cluster.id)) exchange.cluster = undefined
  } else if (cluster !== undefined) {
    memoryGuard.requireRoom(cluster.id)
    if (info.verb === 'watch') {
      const selector = longSelector(info.query)
      const units = selector === undefined ? 1 : 1 + unitsOfSelector(selector)
      memoryGuard.requireMemoryForWatch(cluster.id, fairness.watchesOf(flow), units)
    } else if (takesMemory(exchange)) memoryGuard.requireMemory(cluster.id)
  }
  exchange.cleanups.push(
    exchange.user === anonymous
      ? fairness.enterAnonymous(exchange.request.peerAddress?.() ?? '')
      : enter(exchange, flow, fairness),
  )
  if (!isLongRunning(info) && exchange.user !== anonymous) exchange.lendPlace = () => fairness.lendPlace()
  if (exchange.contentLength <= largeBodyBytes) return undefined
  return fairness.admitLargeBody(flow, exchange.signal).then((release) => {
    exchange.cleanups.push(release)
    // The request may have waited for seconds, so memory is checked again.
    if (cluster !== undefined && exchange.user !== anonymous) memoryGuard.requireMemory(cluster.id)
  })
}

function enter({ info }: Exchange, flow: string, fairness: ServerDependencies['fairness']): () => void {
  if (!isLongRunning(info)) return fairness.enter(flow, 'request')
  const selector = info.verb === 'watch' ? longSelector(info.query) : undefined
  return selector === undefined ? fairness.enter(flow, 'watch') : fairness.enterWatch(flow, selector)
}

/** True for requests that may take much memory, besides watches: lists and large bodies. */
function takesMemory({ info, contentLength }: Exchange): boolean {
  return info.verb === 'list' || contentLength > largeBodyBytes
}

/**
 * The fairness key: the id of the logical cluster, or a separate key for all anonymous requests, which must not spend a
 * tenant's budget.
 */
function flowOf({ user, cluster, provider, request, info }: Exchange): string {
  if (user === anonymous) return 'anonymous'
  if (info.member !== undefined) return `member/${info.member}/${user.name}`
  // A provider pays for what it does in its consumers.
  if (provider !== undefined) return provider.id
  // Sessions of the host's users that read several logical clusters at once.
  return cluster?.id ?? (request.session === undefined ? '-' : `*${user.name}`)
}

/** Waits for a turn of the event loop. A request with a body waits later, after its body was read. */
function awaitTurn(exchange: Exchange, { loopShare, passMonitor }: ServerDependencies): Promise<void> | undefined {
  if (exchange.info.entryPoint === 'loopback' || exchange.user.realm.kind === 'installation') return undefined
  const flow = flowOf(exchange)
  exchange.flow = flow
  const mark = (): void => passMonitor.mark(exchange)
  exchange.turn = () => {
    const turn = loopShare.turn(flow)
    if (turn === undefined) mark()
    return turn?.then(mark)
  }
  return exchange.contentLength === 0 ? exchange.turn() : undefined
}

function impersonate(exchange: Exchange, dependencies: ServerDependencies): Promise<void> | undefined {
  const { info, request } = exchange
  if (exchange.move === 'left') return undefined
  const wanted = info.entryPoint === 'loopback' ? undefined : wantedIdentity(request.rawHeaders)
  return wanted === undefined ? undefined : takeIdentity(exchange, wanted, dependencies)
}

async function takeIdentity(
  exchange: Exchange,
  wanted: NonNullable<ReturnType<typeof wantedIdentity>>,
  { authorizer }: ServerDependencies,
): Promise<void> {
  const { info, user, cluster, signal } = exchange
  // The host's kube-apiserver removes these headers when it impersonates, so a request that has them did not come
  // through it.
  if (info.through !== undefined) throw badRequest('impersonation is not supported in the view of an export')
  if (info.entryPoint === 'aggregated')
    throw badRequest('impersonation is not supported on this path: use /clusters/NAME')
  if (cluster === undefined) {
    if (info.cluster.kind !== 'one') throw badRequest('impersonation is for one logical cluster: use /clusters/NAME')
    // The refusal is the same as in a logical cluster that exists, except for administrators of the installation.
    if (!authorizer.mayKnowAll(user)) throw impersonationForbidden(user, wanted)
    throw pathNotFound()
  }
  exchange.user = await impersonated(user, wanted, cluster, { authorizer, work: exchange.work, signal })
  exchange.audit?.impersonating(exchange.user)
}

/**
 * Decides whether the user may do this. Exported for RequestTrace, which shows this stage even if it waits for nothing.
 */
export function authorize(exchange: Exchange, dependencies: ServerDependencies): Promise<void> | undefined {
  const { info, user, cluster } = exchange
  const { authorizer } = dependencies
  if (info.member !== undefined) return enterMember(exchange, info.member, dependencies)
  // The new place decides.
  if (exchange.move === 'left') return undefined
  const attributes = attributesOf(info)
  // The host has authorized this by the same attributes.
  if (info.cluster.kind === 'none' && isAccessRequest(info.target) && isOfHost(user)) {
    exchange.audit?.decided({ allowed: true, reason: 'allowed by the host' })
    return undefined
  }
  // Health and version are open to all, for missing logical clusters too: they must not reveal which exist.
  if (isOpenPath(attributes)) {
    exchange.audit?.decided({ allowed: true, reason: 'open to everybody' })
    if (cluster !== undefined && isOf(user, cluster)) nameFlow(exchange, attributes, dependencies)
    return undefined
  }
  if (info.through !== undefined) return enterView(exchange, info.through, dependencies)
  const scope = info.cluster.kind === 'all' ? exchange.request.session?.scope : undefined
  if (scope !== undefined && isListOrWatch(info))
    return scope(exchange.signal).then((found) => {
      exchange.scope = found
      exchange.audit?.decided({ allowed: true, reason: 'owner of the logical clusters' })
    })
  const decision =
    cluster === undefined
      ? authorizer.authorizeAll(user, info)
      : authorizer.authorize(user, attributes, { cluster, work: exchange.work, signal: exchange.signal })
  if (decision instanceof Promise) return decision.then((made) => obey(made, attributes, exchange, dependencies))
  obey(decision, attributes, exchange, dependencies)
  return undefined
}

/** Whether the host has authenticated the user: only its front proxy brings such users. */
function isOfHost(user: UserInfo): boolean {
  return user.realm.kind === 'host' && user.name !== anonymous.name
}

function isListOrWatch({ verb, target }: RequestInfo): boolean {
  return target.kind === 'resource' && (verb === 'list' || verb === 'watch')
}

function obey(decision: Decision, attributes: Attributes, exchange: Exchange, dependencies: ServerDependencies): void {
  const { info, user, cluster } = exchange
  exchange.audit?.decided(decision)
  if (!decision.allowed)
    throw forbiddenError(user, attributes, [decision.reason, hintOf(exchange)].filter(Boolean).join(': '))
  // The logical cluster does not exist, and the client is allowed to know that.
  if (cluster === undefined && info.cluster.kind === 'one') throw pathNotFound()
  if (cluster?.filling !== undefined && user.realm.kind !== 'installation' && !mayEnterEarly(exchange))
    throw serviceUnavailable(`logical cluster "${cluster.name}" is not whole yet: ${cluster.filling}`)
  // Only what a user may do counts: nobody else keeps a logical cluster awake, or wakes it.
  if (cluster?.sleep !== undefined) dependencies.activity.note(cluster, info, user)
  nameFlow(exchange, attributes, dependencies)
}

/** True if the objects are there although the LogicalCluster does not say so yet, and for the word that they are. */
function mayEnterEarly({ move, info: { target, method } }: Exchange): boolean {
  return move === 'arrived' || (method === 'POST' && target.kind === 'path' && target.path === transferPath)
}

/**
 * A hint for users of the host, who have rights by owning a logical cluster; empty for other users. It is the same for
 * a logical cluster that does not exist.
 */
function hintOf({ user, info }: Exchange): string {
  if (user.realm.kind !== 'host' || user.name === anonymous.name || info.cluster.kind !== 'one') return ''
  const owners = `spec.owners of LogicalCluster ${JSON.stringify(info.cluster.name)} in the host`
  return `${owners} does not name this user or a group of theirs, and no role in the logical cluster allows it`
}

/** Whether the user belongs to this logical cluster, and so knows that it exists. */
function isOf({ realm }: UserInfo, { id }: LogicalCluster): boolean {
  return realm.kind === 'cluster' && realm.id === id
}

/** Tells the client to which FlowSchema its request belongs, if authorization has loaded the logical cluster. */
function nameFlow(
  exchange: Exchange,
  { verb, path = '', resource }: Attributes,
  { watchCache }: ServerDependencies,
): void {
  const { cluster, info, user } = exchange
  // Our own controllers do not read the headers.
  const objects = cluster && info.entryPoint !== 'loopback' ? watchCache.loaded(cluster.id) : undefined
  if (objects === undefined) return
  exchange.flowHeaders = flowHeaders(objects, { user, verb, path, ...(resource === undefined ? {} : { resource }) })
}

/** The attributes for authorization. A list or watch with a field selector for one name is a request for that name. */
export function attributesOf({ verb, target, query }: RequestInfo): Attributes {
  if (target.kind === 'path') return { verb, path: target.path }
  const { group, version, resource, subresource, namespace } = target
  let { name } = target
  if (name === '' && (verb === 'list' || verb === 'watch')) name = selectedName(query.get('fieldSelector') ?? '')
  // As in kube-apiserver, the namespace of a Namespace object is its own name.
  const inNamespace = group === '' && resource === 'namespaces' && name !== '' ? name : namespace
  return { verb, resource: { group, version, resource, subresource, namespace: inNamespace, name } }
}

/** The name in a field selector, parsed as the list does it: values may contain escaped commas. */
function selectedName(fieldSelector: string): string {
  if (!fieldSelector.includes('metadata.name')) return ''
  try {
    return parseFieldSelector(fieldSelector).exactly('metadata.name') ?? ''
  } catch {
    // The list answers 400 after authorization.
    return ''
  }
}

async function answer(exchange: Exchange, dependencies: ServerDependencies): Promise<void> {
  exchange.answer = await dispatch(exchange, dependencies)
  // The store acknowledges all writes of one transaction in one pass of the event loop, so each is answered in a turn
  // of its own.
  if (exchange.contentLength > 0) await exchange.turn()
}
