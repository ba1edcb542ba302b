// The body of a sign-in: small, JSON, and there within seconds.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { badRequest, requestEntityTooLarge, statusError, unsupportedMediaType } from '#apimachinery/status/index.ts'
import { abortable, childSignal } from '#async/index.ts'
import { headerOf, type IncomingRequest } from '#virtualapi/request/exchange.ts'

export type Credentials = { readonly ticket: string } | { readonly token: string; readonly cluster: string | undefined }

const maxBytes = 32 * 1024
const maxMs = 10_000

/** Rejects with 400, 408, 411, 413 or 415 for a body that is no sign-in. */
export async function readCredentials(request: IncomingRequest): Promise<Credentials> {
  const { rawHeaders } = request
  if (!/^application\/json\s*(;|$)/i.test(headerOf(rawHeaders, 'content-type') ?? ''))
    throw unsupportedMediaType('the body of a sign-in has content-type application/json')
  const length = headerOf(rawHeaders, 'content-length')
  if (length === undefined) throw statusError(411, 'LengthRequired', 'the body of a sign-in has a content-length')
  if (!(Number(length) <= maxBytes)) throw requestEntityTooLarge(`a sign-in has at most ${maxBytes} bytes`)
  using limited = childSignal(request.signal)
  const late = statusError(408, 'Timeout', `a sign-in arrives within ${maxMs / 1000} s`)
  const timer = setTimeout(() => limited.abort(late), maxMs)
  try {
    return credentialsOf(await abortable(request.body(), limited.signal))
  } finally {
    clearTimeout(timer)
  }
}

function credentialsOf(body: Uint8Array): Credentials {
  const value = tryJson(body)
  if (!isJsonObject(value)) throw badRequest('the body of a sign-in is a JSON object')
  const { ticket, token, cluster } = value
  if (typeof ticket === 'string' && token === undefined) return { ticket }
  if (typeof token === 'string' && ticket === undefined && (cluster === undefined || typeof cluster === 'string'))
    return { token: token.trim(), cluster: cluster === '' ? undefined : cluster }
  throw badRequest('a sign-in has the field "ticket", or "token" and perhaps "cluster"')
}

/** The body as JSON; undefined if it is none. The error of the parser would repeat parts of the body. */
function tryJson(body: Uint8Array) {
  try {
    return parseJsonText(Buffer.from(body).toString())
  } catch {
    return undefined
  }
}
