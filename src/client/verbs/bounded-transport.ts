// A Transport to a server that is not trusted. Every response is bounded in size and time while it arrives, must be
// JSON where JSON is expected, and must not be a redirect.
import { requestEntityTooLarge, serviceUnavailable } from '#apimachinery/status/index.ts'
import { abortable, ResponseAccount, childSignal, endWhenGivenUp, type HeldResponse } from '#async/index.ts'
import type { Transport, TransportRequest, TransportResponse } from './transport.ts'

/** Maximum bytes of all unfinished responses of one server. */
const maxHeldBytes = 48 * 1024 * 1024

/**
 * The same transport, with bounds by the kind of request. Rejects with ServiceUnavailable, or 413 if a response is too
 * large.
 */
export function boundedTransport(
  transport: Transport,
  { boundOf = responseBoundOf }: { readonly boundOf?: typeof responseBoundOf } = {},
): Transport {
  const account = new ResponseAccount({ maxBytes: maxHeldBytes })
  return {
    request: (request) => bounded(transport, request, { bound: boundOf(request), account }),
    // An upgraded connection has back pressure; the reader of a refusal bounds its size.
    upgrade: (request) => transport.upgrade(request),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

async function bounded(
  transport: Transport,
  request: TransportRequest,
  { bound, account }: { readonly bound: ResponseBound; readonly account: ResponseAccount },
): Promise<TransportResponse> {
  const life = childSignal(request.signal)
  const late = (): void =>
    life.abort(serviceUnavailable(`${asked(request)} was not answered as a whole within ${bound.withinMs / 1000} s`))
  const timer = bound.withinMs === Infinity ? undefined : setTimeout(late, bound.withinMs)
  // A response without a size limit is passed on as it arrives: its bytes are not held.
  const held = bound.maxBytes === Infinity ? undefined : account.begin()
  const over = (reason?: Error): void => {
    clearTimeout(timer)
    held?.[Symbol.dispose]()
    if (reason !== undefined) life.abort(reason)
    life[Symbol.dispose]()
  }
  try {
    const response = await transport.request({ ...request, signal: life.signal })
    const maxBytes = response.status >= 300 ? maxErrorBytes : bound.maxBytes
    const why = refusalOf(response, { request, bound, maxBytes })
    if (why !== undefined) throw why
    const counting = { over, held, maxBytes, request, signal: life.signal }
    const giveUp = (): void => over(new Error('nobody reads the answer'))
    return { ...response, body: endWhenGivenUp(() => countedChunks(response.body, counting), giveUp) }
  } catch (error) {
    over(error as Error)
    throw error
  }
}

/** Why a response is refused before its body is read; undefined if it is read. */
function refusalOf(
  { status, headers }: TransportResponse,
  { request, bound, maxBytes }: { request: TransportRequest; bound: ResponseBound; maxBytes: number },
): Error | undefined {
  if (status >= 300 && status < 400)
    return serviceUnavailable(`${asked(request)} was answered with a redirect (${status}), which is not followed`)
  const type = headers['content-type']
  if (status < 300 && bound.isJson && type !== undefined && !/^application\/(?:[\w.-]+\+)?json\b/i.test(type.trim()))
    return serviceUnavailable(
      `${asked(request)} was answered with ${JSON.stringify(type.slice(0, 100))} instead of JSON`,
    )
  return Number(headers['content-length'] ?? 0) > maxBytes ? tooLarge(request, maxBytes) : undefined
}

interface Counting {
  /** Ends the timer and the account of the request; with a reason, also aborts the request. */
  readonly over: (reason?: Error) => void
  readonly held: HeldResponse | undefined
  readonly signal: AbortSignal
  readonly maxBytes: number
  readonly request: TransportRequest
}

async function* countedChunks(
  body: AsyncIterable<Uint8Array>,
  { over, held, signal, maxBytes, request }: Counting,
): AsyncGenerator<Uint8Array, undefined> {
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge(request, maxBytes)
      const waiting = held?.hold(chunk.length)
      if (waiting !== undefined) await abortable(waiting, signal)
      yield chunk
    }
  } finally {
    over()
  }
}

function tooLarge(request: TransportRequest, maxBytes: number): Error {
  return requestEntityTooLarge(`the answer to ${asked(request)} is larger than ${maxBytes} bytes`)
}

function asked({ method, path }: Pick<TransportRequest, 'method' | 'path'>): string {
  return `${method} ${JSON.stringify(path.split('?', 1)[0])}`
}

export interface ResponseBound {
  readonly kind: 'small' | 'discovery' | 'object' | 'list' | 'schema' | 'watch' | 'stream'
  /** Maximum bytes of a successful response. */
  readonly maxBytes: number
  /** Time limit for the whole response, in milliseconds. */
  readonly withinMs: number
  /** Whether the response must be JSON; false allows any content type. */
  readonly isJson: boolean
}

const [kib, mib, second] = [1024, 1024 * 1024, 1000]

const bounds = {
  /** Versions, keys, reviews, tokens. */
  small: { kind: 'small', maxBytes: 256 * kib, withinMs: 15 * second, isJson: true },
  discovery: { kind: 'discovery', maxBytes: mib, withinMs: 15 * second, isJson: true },
  /** An object of etcd has 1.5 MiB at most, most often as protobuf, which is shorter than JSON. */
  object: { kind: 'object', maxBytes: 8 * mib, withinMs: 60 * second, isJson: true },
  /** A page of a list: a client asks for smaller pages if one is too large. Metrics have no pages. */
  list: { kind: 'list', maxBytes: 16 * mib, withinMs: 120 * second, isJson: true },
  /** One OpenAPI document. */
  schema: { kind: 'schema', maxBytes: 16 * mib, withinMs: 60 * second, isJson: true },
  /** Each event is bounded by its reader. */
  watch: { kind: 'watch', maxBytes: Infinity, withinMs: Infinity, isJson: true },
  /** Logs and output of pods: passed on as they are read. */
  stream: { kind: 'stream', maxBytes: Infinity, withinMs: Infinity, isJson: false },
} as const satisfies Record<ResponseBound['kind'], ResponseBound>

/** The bound of responses that are passed on as they arrive, whatever was asked for. */
export const passedOn = (): ResponseBound => bounds.stream

/** Maximum bytes of an error response, which is a Status. */
export const maxErrorBytes = 256 * kib

const streamed: ReadonlySet<string> = new Set(['log', 'exec', 'attach', 'portforward', 'proxy'])
const reviews: ReadonlySet<string> = new Set(['authentication.k8s.io', 'authorization.k8s.io'])

/** The bound of the response to a request. `path` includes the query. */
export function responseBoundOf({ method, path }: { readonly method: string; readonly path: string }): ResponseBound {
  const [bare = '', query = ''] = path.split('?')
  const [root, ...rest] = bare.split('/').filter((part) => part !== '')
  if (root === 'openapi') return bounds.schema
  if (root !== 'api' && root !== 'apis') return bounds.small
  const [group, steps] = root === 'api' ? ['', rest.slice(1)] : [rest[0] ?? '', rest.slice(2)]
  if (steps.length === 0) return bounds.discovery
  const [resource = '', name, subresource] =
    steps[0] === 'namespaces' && steps.length > 2 && !isOfNamespace(steps[2]) ? steps.slice(2) : steps
  const isOne = resource !== '' && name !== undefined
  if (isOne && streamed.has(subresource ?? '')) return bounds.stream
  if (reviews.has(group) || subresource === 'token') return bounds.small
  if (isOne) return bounds.object
  if (method === 'GET' && isWatch(query)) return bounds.watch
  return method === 'GET' || method === 'DELETE' ? bounds.list : bounds.object
}

/** Whether the step is a subresource of the namespace, as in `namespaces/NAME/status`, and not a collection in it. */
function isOfNamespace(step: string | undefined): boolean {
  return step === 'status' || step === 'finalize'
}

function isWatch(query: string): boolean {
  const value = new URLSearchParams(query).get('watch')
  return value !== null && value !== 'false' && value !== '0'
}
