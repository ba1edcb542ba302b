// Reads the bytes of a response into JSON, or into a StatusError.
import { parseJsonInTurns, parseJsonText } from '#apimachinery/json/index.ts'
import {
  fromStatus,
  internalError,
  isStatusError,
  requestEntityTooLarge,
  statusError,
  type Status,
  type StatusError,
} from '#apimachinery/status/index.ts'
import type { TransportResponse } from './transport.ts'

/** The whole body. Rejects with RequestEntityTooLarge beyond `maxBytes`. */
export async function readBody({ body }: TransportResponse, { maxBytes }: { maxBytes: number }): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body) {
    size += part.length
    if (size > maxBytes) throw requestEntityTooLarge(`the answer is larger than ${maxBytes} bytes`)
    parts.push(part)
  }
  if (parts.length === 1 && parts[0]) return Buffer.from(parts[0].buffer, parts[0].byteOffset, parts[0].byteLength)
  return Buffer.concat(parts, size)
}

interface JsonBounds {
  readonly maxBytes: number
  /**
   * Awaited between pieces of a large response, so that other work runs: for servers that are not trusted. Absent: the
   * response is parsed at once.
   */
  readonly turn?: (() => Promise<void> | undefined) | undefined
  /** Called with the size of a successful response, in bytes. */
  readonly counted?: ((bytes: number) => void) | undefined
}

/** The JSON of a successful response. Rejects with the server's StatusError otherwise. */
export async function readJson(response: TransportResponse, { maxBytes, turn, counted }: JsonBounds): Promise<unknown> {
  const failed = response.status < 200 || response.status > 299
  const bytes = await readBody(response, { maxBytes: failed ? Math.min(maxBytes, 1 << 20) : maxBytes })
  if (failed) throw errorOf(response, bytes)
  counted?.(bytes.length)
  try {
    return await parseAnswer(bytes, turn)
  } catch (error) {
    if (isStatusError(error, 'RequestEntityTooLarge')) throw error
    throw internalError(`the server answered ${response.status} with something that is not JSON`, error)
  }
}

/** The JSON of a response, parsed in pieces if the response is large and `turn` is given. */
export async function parseAnswer(bytes: Uint8Array, turn: JsonBounds['turn']): Promise<unknown> {
  if (turn !== undefined && bytes.length > atOnceBytes)
    return await parseJsonInTurns(bytes, { maxBytes: Infinity, maxValues: maxResponseValues, turn })
  return parseJsonText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
}

/** Bytes up to which a response is parsed at once. */
const atOnceBytes = 64 * 1024
/**
 * Maximum number of values in a response that is parsed in pieces. A page of 500 large pods has some 400,000 values.
 */
const maxResponseValues = 1_000_000

/** True for a Status object that reports a failure. */
export function isStatus(value: unknown): value is Status {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as { kind?: unknown }).kind === 'Status' &&
    typeof (value as { code?: unknown }).code === 'number'
  )
}

/** The StatusError for a Status object from a response or a watch. */
export function statusErrorOf(status: Status): StatusError {
  return fromStatus(status)
}

const reasons: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

/** The error of a failed response. A proxy may send text of its own; the HTTP code then decides. */
function errorOf({ status: code, headers }: TransportResponse, bytes: Buffer): StatusError {
  const text = bytes.toString('utf8')
  try {
    const value: unknown = parseJsonText(text)
    if (isStatus(value)) return statusErrorOf(value)
  } catch {
    // Not JSON: handled below.
  }
  const said = text.trim().slice(0, 200)
  const message = `the server answered ${code}${said === '' ? '' : `: "${said}"`}`
  const retryAfterSeconds = Number(headers['retry-after'])
  const details = retryAfterSeconds > 0 ? { details: { retryAfterSeconds } } : {}
  return statusError(code, reasons[code] ?? 'Unknown', message, details)
}

const newline = 0x0a

/**
 * The lines of a watch, which is a stream of JSON documents: one per line, without \n. Only \n ends a line; Node's
 * readline would also end it at U+2028. Drops an unfinished last line. Rejects if a line is longer than `maxBytes`.
 */
export async function* linesOf(
  body: AsyncIterable<Uint8Array>,
  { maxBytes }: { maxBytes: number },
): AsyncGenerator<string> {
  let parts: Uint8Array[] = []
  let held = 0
  for await (const chunk of body) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const tail = chunk.subarray(start, end)
      start = end + 1
      if (held + tail.length > maxBytes) throw tooLong(maxBytes)
      const line = parts.length === 0 ? decode(tail) : decode(Buffer.concat([...parts, tail]))
      parts = []
      held = 0
      if (line !== '') yield line
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start))
      held += chunk.length - start
      if (held > maxBytes) throw tooLong(maxBytes)
    }
  }
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function tooLong(maxBytes: number): Error {
  return requestEntityTooLarge(`an event of the watch is larger than ${maxBytes} bytes`)
}
