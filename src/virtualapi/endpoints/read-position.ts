// resourceVersion, resourceVersionMatch, limit and continue of a list: what they mean together, and what is refused.
import { Buffer } from 'node:buffer'
import { badRequest, expired, statusError, timedOut } from '../../apimachinery/status/index.ts'
import { isJsonObject, tryRevision, type Revision } from '../../apimachinery/meta/index.ts'
import type { ListOptions } from './list-options.ts'
import type { EndpointParts } from './parts.ts'

/** How long a read "not older than" a revision waits for it. */
const waitMs = 3000

export interface ListPosition {
  /** Read exactly this state; undefined = now. */
  readonly at: Revision | undefined
  /** Wait until at least this state is known. */
  readonly notOlderThan: Revision | undefined
  /** 0 = all. */
  readonly limit: number
  /** Go on after this `namespace/name`. */
  readonly after: string | undefined
}

/** Where a list stands. Throws 400, or (for a continue token whose state is gone) leaves `at` for the caller to find out. */
export function listPosition({ limit: asked, match, resourceVersion: version, token }: ListOptions): ListPosition {
  const limit = Math.max(0, asked)
  if (token !== '') {
    const place = decodeToken(token)
    if (version !== '' && version !== '0')
      throw badRequest('specifying resource version is not allowed when using continue')
    return { ...place, notOlderThan: undefined, limit }
  }
  const revision = version === '' ? undefined : requireRevision(version)
  if (revision === undefined || revision === 0)
    return { at: undefined, notOlderThan: undefined, limit, after: undefined }
  // A page of an old state: what clients asked for before resourceVersionMatch existed.
  const exact = match === 'Exact' || (match === '' && limit > 0)
  return exact
    ? { at: revision, notOlderThan: revision, limit, after: undefined }
    : { at: undefined, notOlderThan: revision, limit, after: undefined }
}

/** The resourceVersion as a revision. Throws 400 for anything else. */
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

/** Waits until the server knows this revision. Rejects 504 with the cause that clients look for. */
export async function waitForRevision(
  { hub }: Pick<EndpointParts, 'hub'>,
  revision: Revision,
  signal: AbortSignal,
): Promise<void> {
  if (hub.revision() >= revision) return
  const limit = AbortSignal.timeout(waitMs)
  try {
    await hub.reached(revision, { signal: AbortSignal.any([signal, limit]) })
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error
    throw timedOut(`Too large resource version: ${revision}, current: ${hub.revision()}`, [
      { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' },
    ])
  }
}

/** The opaque token that goes on after this key at this state. Survives restarts: it names both. */
export function encodeToken(revision: Revision | -1, after: string): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: `${after}\u0000` })).toString(
    'base64url',
  )
}

function decodeToken(token: string): { at: Revision | undefined; after: string } {
  const { v, rv, start } = tokenParts(token)
  if (v !== 'meta.k8s.io/v1')
    throw brokenToken(`server does not recognize this encoded version ${typeof v === 'string' ? v : ''}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0)
    throw brokenToken('incorrect encoded start resourceVersion')
  if (typeof start !== 'string' || start === '') throw brokenToken('encoded start key empty')
  // -1: the client accepted that the rest of its list is of another state.
  return { at: rv > 0 ? (rv as Revision) : undefined, after: start.replace(/\u0000$/, '') }
}

function tokenParts(token: string): { v?: unknown; rv?: unknown; start?: unknown } {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    if (isJsonObject(parts)) return parts
  } catch (cause) {
    throw brokenToken('it must be taken from an answer as it is', cause)
  }
  throw brokenToken('it must be taken from an answer as it is')
}

function brokenToken(why: string, cause?: unknown): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`, cause)
}

/** 410 for a page whose state is gone, with a token to go on from the same place in the newest state. */
export function expiredToken(after: string): Error {
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'
  const error = statusError(410, 'Expired', message)
  Object.assign(error.status.metadata, { continue: encodeToken(-1, after) })
  return error
}

/** 410 for a list at a state that is gone. */
export function expiredList(revision: Revision): Error {
  return expired(`The resourceVersion for the provided list is too old: ${revision}`)
}
