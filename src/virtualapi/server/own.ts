// Decides which of the processes that share the logical clusters answers a request, and whether that process may still
// answer it when the answer is ready.
import { badRequest, serviceUnavailable, statusError, type StatusError } from '#apimachinery/status/index.ts'
import { clusterOfCertificate, clusterOfToken } from '#virtualapi/auth/authn/claimed-cluster.ts'
import { isOpenPath } from '#virtualapi/auth/authz/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { headerOf, type Exchange } from '#virtualapi/request/exchange.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import { hasHopHeader } from './wire/hop-headers.ts'
import type { ServerDependencies } from './dependencies.ts'

type Dependencies = Pick<ServerDependencies, 'ownership'>

/**
 * Lets the request in if this process owns its logical cluster; else sets `forwardTo`. Throws 503 while no owner is
 * known, and 400 if a client sends a header that only our processes may add when they pass a request on.
 */
export function own(exchange: Exchange, { ownership }: Dependencies): void {
  if (ownership === undefined) return
  const { request, info } = exchange
  if (request.isForwarded !== true && hasHopHeader(request.rawHeaders))
    throw badRequest('the request has a header that only servers may send to each other')
  if (info.cluster.kind === 'all' && !ownership.isLive) throw moving()
  const id = exchange.cluster?.id ?? claimedBy(exchange)
  if (id === undefined) return
  const tenure = ownership.enter(id)
  if (tenure !== undefined) {
    exchange.tenure = { cluster: id, of: tenure }
    return
  }
  const owner = ownership.ownerOf(id)
  // A request is not passed on twice: for a moment, processes may disagree about the owner.
  if (owner === undefined || request.isForwarded === true || request.loopbackUser !== undefined) throw moving()
  exchange.forwardTo = owner
}

/**
 * The logical cluster that the credentials claim, if the path names none; undefined if they claim none. Credentials are
 * looked at in the order in which authentication tries them.
 */
function claimedBy({ info, request: { peerCertificate, rawHeaders } }: Exchange): ClusterId | undefined {
  // Every process reaches all members.
  if (info.cluster.kind !== 'none' || info.member !== undefined || isAboutProcess(info)) return undefined
  const ofCertificate = clusterOfCertificate(peerCertificate)
  if (ofCertificate !== undefined || info.entryPoint !== 'unprefixed') return ofCertificate
  return clusterOfToken(headerOf(rawHeaders, 'authorization'))
}

/** True for health and version, which each process answers for itself, to every client. */
function isAboutProcess({ verb, target }: RequestInfo): boolean {
  return target.kind === 'path' && isOpenPath({ verb, path: target.path })
}

/** Throws 503 if the logical cluster that authentication has found is not the one that the request was let in for. */
export function requireTenure({ tenure, cluster, info }: Exchange, { ownership }: Dependencies): void {
  if (ownership === undefined || cluster === undefined || tenure?.cluster === cluster.id) return
  if (info.cluster.kind !== 'none' || !isAboutProcess(info)) throw moving()
}

/**
 * Ends the request's tenure. Returns the error to send instead of the answer, if this process may not answer any more;
 * undefined if it may.
 */
export function endTenure(exchange: Exchange, { ownership }: Dependencies): StatusError | undefined {
  if (ownership === undefined || !exchange.isUnderstood) return undefined
  const { tenure, info } = exchange
  exchange.tenure = undefined
  tenure?.of.leave()
  const isValid = tenure === undefined ? info.cluster.kind !== 'all' || ownership.isLive : tenure.of.isValid()
  if (isValid) return undefined
  return isRead(exchange.request.method) ? moving() : unknownOutcome()
}

/** The 503 for a request that had no effect: a client that tries again will find the owner. */
export function moving(cause?: unknown): StatusError {
  return serviceUnavailable('the logical cluster is being taken over by another server, please try again', cause)
}

/**
 * The 504 for a write that may have taken effect. It has no Retry-After, so clients do not repeat the write by
 * themselves.
 */
export function unknownOutcome(cause?: unknown): StatusError {
  const message = 'Timeout: the server that was asked did not answer; the request may have taken effect'
  return statusError(504, 'Timeout', message, { cause })
}

export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
