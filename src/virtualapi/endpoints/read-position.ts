// resourceVersion, resourceVersionMatch, limit and continue of a list: what they mean together, and what is refused.
import { Buffer } from 'node:buffer'
import { badRequest, expired, invalid, statusError, timedOut } from '../../apimachinery/status/index.ts'
import { tryRevision, type Revision } from '../../apimachinery/meta/index.ts'
import type { ServerParts } from '../server/parts.ts'

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

function refusal(message: string, field: string): Error {
  return invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
    { reason: 'FieldValueForbidden', message: `Forbidden: ${message}`, field },
  ])
}

/** Reads the parameters. Throws 400, 422 or (for a continue token whose state is gone) leaves `at` for the caller to find out. */
export function listPosition(query: URLSearchParams): ListPosition {
  const limit = parseLimit(query.get('limit'))
  const match = query.get('resourceVersionMatch') ?? ''
  const version = query.get('resourceVersion') ?? ''
  const token = query.get('continue') ?? ''
  if (query.get('sendInitialEvents') !== null)
    throw refusal('sendInitialEvents is forbidden for list', 'sendInitialEvents')
  if (token !== '') {
    if (match !== '')
      throw refusal('resourceVersionMatch is forbidden when continue is provided', 'resourceVersionMatch')
    if (version !== '' && version !== '0')
      throw badRequest('specifying resource version is not allowed when using continue')
    return { ...decodeToken(token), notOlderThan: undefined, limit }
  }
  if (match !== '' && version === '')
    throw refusal('resourceVersionMatch is forbidden unless resourceVersion is provided', 'resourceVersionMatch')
  if (match !== '' && match !== 'Exact' && match !== 'NotOlderThan')
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: "${match}": supported values: "Exact", "NotOlderThan", ""`,
        field: 'resourceVersionMatch',
      },
    ])
  if (match === 'Exact' && version === '0')
    throw refusal('resourceVersionMatch "exact" is forbidden for resourceVersion "0"', 'resourceVersionMatch')
  const revision = version === '' ? undefined : requireRevision(version)
  if (revision === undefined || revision === 0)
    return { at: undefined, notOlderThan: undefined, limit, after: undefined }
  // A page of an old state: what clients asked for before resourceVersionMatch existed.
  const exact = match === 'Exact' || (match === '' && limit > 0)
  return exact
    ? { at: revision, notOlderThan: revision, limit, after: undefined }
    : { at: undefined, notOlderThan: revision, limit, after: undefined }
}

function parseLimit(text: string | null): number {
  if (text === null || text === '') return 0
  if (!/^-?[0-9]+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`)
  return Math.max(0, Number(text))
}

/** The resourceVersion as a revision. Throws 400 for anything else. */
export function requireRevision(text: string): Revision {
  const revision = tryRevision(text)
  if (revision === undefined)
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      {
        reason: 'FieldValueInvalid',
        message: `Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`,
        field: 'resourceVersion',
      },
    ])
  return revision
}

/** Waits until the server knows this revision. Rejects 504 with the cause that clients look for. */
export async function waitForRevision(
  { hub }: Pick<ServerParts, 'hub'>,
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
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as {
      v?: unknown
      rv?: unknown
      start?: unknown
    }
    if (v === 'meta.k8s.io/v1' && typeof rv === 'number' && Number.isSafeInteger(rv) && typeof start === 'string')
      // -1: the client accepted that the rest of its list is of another state.
      return { at: rv > 0 ? (rv as Revision) : undefined, after: start.replace(/\u0000$/, '') }
  } catch (cause) {
    throw badRequest('continue key is not valid: it must be taken from an answer as it is', cause)
  }
  throw badRequest('continue key is not valid: it must be taken from an answer as it is')
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
