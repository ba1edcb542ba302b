// The state that a list reads, from resourceVersion, resourceVersionMatch, limit and continue.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { Buffer } from 'node:buffer'
import { badRequest, expired, statusError, timedOut } from '#apimachinery/status/index.ts'
import { isJsonObject, tryRevision, type Revision } from '#apimachinery/meta/index.ts'
import type { ListOptions } from './list-options.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

/** How long a read waits for a revision that is not known yet, milliseconds. */
const waitMs = 3000

export interface ListPosition {
  /** Read exactly this state; undefined: the newest. */
  readonly at: Revision | undefined
  /** Wait until at least this state is known. */
  readonly notOlderThan: Revision | undefined
  /** Maximum of objects; 0: no limit. */
  readonly limit: number
  /** Continue after this `namespace/name`. */
  readonly after: string | undefined
  /**
   * When the first page of this list was answered, wall clock in milliseconds: all its continue tokens expire together.
   */
  readonly issuedMs: number
}

/**
 * How long a continue token is valid, milliseconds. As in kube-apiserver, which compacts etcd every five minutes:
 * tokens from before a compaction are too old.
 */
const maxTokenAgeMs = 5 * 60_000

/**
 * The state that a list reads. Throws 400, and 410 for an old continue token. The caller must check whether the state
 * of a continue token still exists.
 */
export function listPosition(
  { limit: asked, match, resourceVersion: version, token }: ListOptions,
  { nowMs }: { readonly nowMs: number },
): ListPosition {
  const limit = Math.max(0, asked)
  if (token !== '') {
    const place = decodeToken(token)
    if (version !== '' && version !== '0')
      throw badRequest('specifying resource version is not allowed when using continue')
    // The token in a 410 answer starts a new list, so the tokens of this list are valid for the usual time.
    const issuedMs = place.at === undefined ? nowMs : place.issuedMs
    if (nowMs - issuedMs > maxTokenAgeMs) throw expiredToken(place.after)
    return { ...place, notOlderThan: undefined, limit, issuedMs }
  }
  const revision = version === '' ? undefined : requireRevision(version)
  if (revision === undefined || revision === 0)
    return { at: undefined, notOlderThan: undefined, limit, after: undefined, issuedMs: nowMs }
  // Before resourceVersionMatch existed, resourceVersion with a limit meant Exact; it still does.
  const exact = match === 'Exact' || (match === '' && limit > 0)
  return exact
    ? { at: revision, notOlderThan: revision, limit, after: undefined, issuedMs: nowMs }
    : { at: undefined, notOlderThan: revision, limit, after: undefined, issuedMs: nowMs }
}

/** Parses a resourceVersion. Throws 400 with kube-apiserver's message. */
export function requireRevision(text: string): Revision {
  const revision = tryRevision(text.replace(/^0+(?=[0-9])/, ''))
  if (revision === undefined) {
    const why = /^[0-9]+$/.test(text) ? 'value out of range' : 'invalid syntax'
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": ${why}`,
    )
  }
  return revision
}

/**
 * Waits until the watch cache has this revision, at most 3 s. Rejects with 504 and the cause ResourceVersionTooLarge.
 */
export async function waitForRevision(
  { watchCache }: Pick<EndpointDependencies, 'watchCache'>,
  revision: Revision,
  signal: AbortSignal,
): Promise<void> {
  if (watchCache.revision() >= revision) return
  const limit = AbortSignal.timeout(waitMs)
  try {
    await watchCache.reached(revision, { signal: AbortSignal.any([signal, limit]) })
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error
    throw timedOut(`Too large resource version: ${revision}, current: ${watchCache.revision()}`, [
      { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' },
    ])
  }
}

/**
 * A continue token: the revision (-1: the newest state), the last key and when it was issued, in seconds. The server
 * keeps no state for it, so it survives restarts.
 */
export function encodeToken(
  revision: Revision | -1,
  after: string,
  { issuedMs }: Pick<ListPosition, 'issuedMs'>,
): string {
  const parts = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\u0000`, issued: Math.floor(issuedMs / 1000) }
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

function decodeToken(token: string): { at: Revision | undefined; after: string; issuedMs: number } {
  const { v, rv, start, issued } = tokenParts(token)
  if (v !== 'meta.k8s.io/v1')
    throw invalidToken(`server does not recognize this encoded version ${typeof v === 'string' ? v : ''}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0)
    throw invalidToken('incorrect encoded start resourceVersion')
  if (typeof start !== 'string' || start === '') throw invalidToken('encoded start key empty')
  // A token without a time was issued by an older version of kcp, so it counts as expired.
  const issuedMs = typeof issued === 'number' ? issued * 1000 : 0
  // -1: the token of a 410 answer; the client continues in the newest state.
  return { at: rv > 0 ? (rv as Revision) : undefined, after: start.replace(/\u0000$/, ''), issuedMs }
}

function tokenParts(token: string): { v?: unknown; rv?: unknown; start?: unknown; issued?: unknown } {
  try {
    const parts: unknown = parseJsonText(Buffer.from(token, 'base64url').toString())
    if (isJsonObject(parts)) return parts
  } catch (cause) {
    throw invalidToken('it must be taken from an answer as it is', cause)
  }
  throw invalidToken('it must be taken from an answer as it is')
}

function invalidToken(why: string, cause?: unknown): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`, cause)
}

/**
 * The 410 for a continue token whose state is compacted, with a token that continues at the same key in the newest
 * state.
 */
export function expiredToken(after: string): Error {
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'
  const error = statusError(410, 'Expired', message)
  Object.assign(error.status.metadata, { continue: encodeToken(-1, after, { issuedMs: 0 }) })
  return error
}

/** The 410 for a list at a resourceVersion that is compacted. */
export function expiredList(revision: Revision): Error {
  return expired(`The resourceVersion for the provided list is too old: ${revision}`)
}
