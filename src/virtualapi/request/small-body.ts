// A body that is small, a JSON object, and there within seconds: all that an unknown client may send.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, requestEntityTooLarge, statusError, unsupportedMediaType } from '#apimachinery/status/index.ts'
import { abortable, childSignal } from '#async/index.ts'
import { headerOf, type IncomingRequest } from './exchange.ts'

interface Bounds {
  /** What the body is, for messages: `a sign-in`. */
  readonly what: string
  readonly maxBytes: number
  /** Milliseconds in which the whole body must arrive. */
  readonly maxMs: number
}

/** Rejects with 400, 408, 411, 413 or 415 for any other body. */
export async function readSmallJson(
  request: IncomingRequest,
  { what, maxBytes, maxMs }: Bounds,
): Promise<Readonly<Record<string, JsonValue>>> {
  const { rawHeaders } = request
  if (!/^application\/json\s*(;|$)/i.test(headerOf(rawHeaders, 'content-type') ?? ''))
    throw unsupportedMediaType(`the body of ${what} has content-type application/json`)
  const length = headerOf(rawHeaders, 'content-length')
  if (length === undefined) throw statusError(411, 'LengthRequired', `the body of ${what} has a content-length`)
  if (!(Number(length) <= maxBytes)) throw requestEntityTooLarge(`${what} has at most ${maxBytes} bytes`)
  using limited = childSignal(request.signal)
  const late = statusError(408, 'Timeout', `${what} arrives within ${maxMs / 1000} s`)
  const timer = setTimeout(() => limited.abort(late), maxMs)
  try {
    const value = tryJson(await abortable(request.body(), limited.signal))
    if (!isJsonObject(value)) throw badRequest(`the body of ${what} is a JSON object`)
    return value
  } finally {
    clearTimeout(timer)
  }
}

/** The body as JSON; undefined if it is none. The error of the parser would repeat parts of the body. */
function tryJson(body: Uint8Array): JsonValue | undefined {
  try {
    return parseJsonText(Buffer.from(body).toString())
  } catch {
    return undefined
  }
}
