// Every error is a Kubernetes Status: one class, and one function per reason, so that code and reason always fit.
import { goQuote } from '#apimachinery/text/go-text.ts'
import { groupResourceText, type GroupResource } from '#apimachinery/meta/gvr.ts'

export interface StatusCause {
  reason?: string
  message?: string
  field?: string
}

/** metav1.Status of a failure. */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, string>
  status: 'Failure' | 'Success'
  message?: string
  reason?: string
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    causes?: StatusCause[]
    retryAfterSeconds?: number
  }
  code: number
}

/** The one error class of this program. `status` is sent to the client; `cause` is only logged. */
export class StatusError extends Error {
  readonly status: Status
  /** Extra response headers, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent instead of the Status: paths outside the API get a response in plain text, as from a real server. */
  readonly text: string | undefined

  constructor(status: Status, options: { cause?: unknown; headers?: Record<string, string>; text?: string } = {}) {
    super(
      status.message ?? status.reason ?? 'failure',
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'StatusError'
    this.status = status
    this.headers = options.headers ?? {}
    this.text = options.text
  }

  get code(): number {
    return this.status.code
  }

  get reason(): string {
    return this.status.reason ?? ''
  }
}

/** True for a StatusError with this reason (`NotFound`, `Conflict`, ...), or with any if none is given. */
export function isStatusError(error: unknown, reason?: string): error is StatusError {
  return error instanceof StatusError && (reason === undefined || error.reason === reason)
}

interface Parts {
  details?: Status['details']
  cause?: unknown
  headers?: Record<string, string>
}

/** A StatusError of any code and reason; prefer the makers below. */
export function statusError(
  code: number,
  reason: string,
  message: string,
  { details, cause, headers }: Parts = {},
): StatusError {
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    ...(reason === '' ? {} : { reason }),
    code,
  }
  if (details !== undefined) status.details = details
  return new StatusError(status, { cause, ...(headers ? { headers } : {}) })
}

function detailsOf({ group, resource }: GroupResource, name: string): NonNullable<Status['details']> {
  return { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: resource }
}

export function badRequest(message: string, cause?: unknown): StatusError {
  return statusError(400, 'BadRequest', message, { cause })
}
export function unauthorized(message = 'Unauthorized'): StatusError {
  return statusError(401, 'Unauthorized', message)
}
/** `message` is the part after the colon, such as `User "bob" cannot list resource ...`. */
export function forbidden(gr: GroupResource, name: string, message: string, causes?: StatusCause[]): StatusError {
  const what =
    gr.resource === ''
      ? ''
      : name === ''
        ? `${groupResourceText(gr)} is `
        : `${groupResourceText(gr)} ${goQuote(name)} is `
  const details = gr.resource === '' ? {} : detailsOf(gr, name)
  return statusError(403, 'Forbidden', `${what}forbidden: ${message}`, {
    details: causes ? { ...details, causes } : details,
  })
}
export function notFound(gr: GroupResource, name: string): StatusError {
  return statusError(404, 'NotFound', `${groupResourceText(gr)} ${goQuote(name)} not found`, {
    details: detailsOf(gr, name),
  })
}
const notServed = 'the server could not find the requested resource'
/** The resource or subresource is not served, though its group and version are. */
export function pathNotFound(): StatusError {
  return statusError(404, 'NotFound', notServed, { details: {} })
}
/** The path belongs to no served group and version: plain text, as from a real server. */
export function pageNotFound(): StatusError {
  const { status } = pathNotFound()
  return new StatusError(status, { text: '404 page not found\n' })
}
/** The path, of a built-in resource or of discovery, does not support this method. */
export function methodNotServed(): StatusError {
  return statusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  })
}
/** A custom resource does not support this verb. */
export function methodNotAllowed(gr: GroupResource, verb: string): StatusError {
  return statusError(
    405,
    'MethodNotAllowed',
    `${verb} is not supported on resources of kind "${groupResourceText(gr)}"`,
    {
      details: detailsOf(gr, ''),
    },
  )
}
export function notAcceptable(message: string): StatusError {
  return statusError(406, 'NotAcceptable', message)
}
/** 409. `ending`: the object with this name is being deleted, so the name will become free. */
export function alreadyExists(gr: GroupResource, name: string, { ending = false } = {}): StatusError {
  const text = `${ending ? 'object is being deleted: ' : ''}${groupResourceText(gr)} ${goQuote(name)} already exists`
  return statusError(409, 'AlreadyExists', text, {
    details: detailsOf(gr, name),
  })
}
export function conflict(gr: GroupResource, name: string, message: string, cause?: unknown): StatusError {
  return statusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${groupResourceText(gr)} ${goQuote(name)}: ${message}`,
    {
      details: detailsOf(gr, name),
      cause,
    },
  )
}
export const objectModified =
  'the object has been modified; please apply your changes to the latest version and try again'

/** 410: the requested position is no longer kept; the client must list again. */
export function expired(message = 'The resourceVersion for the provided watch is too old.'): StatusError {
  return statusError(410, 'Expired', message)
}
export function gone(message: string): StatusError {
  return statusError(410, 'Gone', message)
}
export function requestEntityTooLarge(message: string): StatusError {
  return statusError(413, 'RequestEntityTooLarge', message)
}
export function unsupportedMediaType(message: string): StatusError {
  return statusError(415, 'UnsupportedMediaType', message)
}
/**
 * Maximum causes in one Status: the response to an object with many wrong fields must not be ten times as large as the
 * object.
 */
const maxCauses = 1000
/** Maximum characters of all causes: each of them may repeat the same long list. */
const maxCausesLength = 1024 * 1024

/** 422 with one cause per field, at most the first thousand. The message lists them as a real server does. */
export function invalid(gk: { group: string; kind: string }, name: string, all: StatusCause[]): StatusError {
  const causes = firstOf(all)
  const more = all.length - causes.length
  if (more > 0) causes.push({ message: `${more} more errors` })
  const text = causes.map((cause) => (cause.field ? `${cause.field}: ` : '') + (cause.message ?? ''))
  const different = [...new Set(text)]
  const list = different.length === 1 ? (different[0] ?? '') : `[${different.join(', ')}]`
  const kind = gk.group === '' ? gk.kind : `${gk.kind}.${gk.group}`
  return statusError(422, 'Invalid', `${kind} ${goQuote(name)} is invalid: ${list}`, {
    details: {
      ...(name === '' ? {} : { name }),
      ...(gk.group === '' ? {} : { group: gk.group }),
      ...(gk.kind === '' ? {} : { kind: gk.kind }),
      causes,
    },
  })
}
/** The first causes within the limits; at least one, however long. */
function firstOf(all: readonly StatusCause[]): StatusCause[] {
  let length = 0
  const end = all.findIndex((cause, index) => {
    length += (cause.message?.length ?? 0) + (cause.field?.length ?? 0)
    return index === maxCauses || (index > 0 && length > maxCausesLength)
  })
  return all.slice(0, end < 0 ? all.length : end)
}

/** 429: over a budget; `Retry-After` says when to try again. */
export function tooManyRequests(message: string, retryAfterSeconds = 1): StatusError {
  return statusError(429, 'TooManyRequests', message, {
    details: { retryAfterSeconds },
    headers: { 'Retry-After': String(retryAfterSeconds) },
  })
}
/** 500. The message goes to the client and must not reveal internals; `cause` is logged. */
export function internalError(message: string, cause?: unknown): StatusError {
  return statusError(500, 'InternalError', `Internal error occurred: ${message}`, {
    details: { causes: [{ message }] },
    cause,
  })
}
export function serviceUnavailable(message: string, cause?: unknown): StatusError {
  return statusError(503, 'ServiceUnavailable', message, { cause, headers: { 'Retry-After': '1' } })
}
export function timedOut(message: string, causes?: StatusCause[]): StatusError {
  return statusError(504, 'Timeout', `Timeout: ${message}`, {
    details: { ...(causes ? { causes } : {}), retryAfterSeconds: 1 },
    headers: { 'Retry-After': '1' },
  })
}

/** The Status as a StatusError, for a client that has read one from a server. */
export function fromStatus(status: Status, cause?: unknown): StatusError {
  return new StatusError(status, { cause })
}
