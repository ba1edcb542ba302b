// Runs the stages and always gives an answer: this is the only place that turns errors into a Status.
import {
  internalError,
  isStatusError,
  notAcceptable,
  serviceUnavailable,
  type StatusError,
} from '#apimachinery/status/index.ts'
import { errorResponse, largeResponseBytes, reformat, type ReadableForm } from '#virtualapi/codec/responses.ts'
import { preferredFormat } from '#virtualapi/codec/negotiate.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { fromStoreError } from '#virtualapi/write/registry/store-errors.ts'
import { isStoreError } from '#store/index.ts'
import { effortToReformat } from '#virtualapi/codec/effort.ts'
import { processTracer, type Tracer } from '#telemetry/index.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { maxAuditedBytes } from '#virtualapi/request/request-audit.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import {
  Exchange,
  type ApiResponse,
  type BytesResponse,
  type IncomingRequest,
  type ChunkedResponse,
  type SentResponse,
  type ForwardResponse,
  type StreamResponse,
} from '#virtualapi/request/exchange.ts'
import { compressBytes, compressChunks, isCompressed } from './wire/compress.ts'
import type { Peer } from '#virtualapi/request/ownership.ts'
import type { ServerDependencies } from './dependencies.ts'
import { endTenure } from './own.ts'
import { codeLabel, verbLabel } from './limits/request-labels.ts'
import { RequestTrace } from './request-trace.ts'
import { isLongRunning, stages, type Stage } from './stages.ts'
import { warningHeader } from './wire/warning-header.ts'

/** Above this many bytes, an answer is indented only on explicit request, because it must be decoded to be indented. */
const maxUnaskedIndentBytes = 4 * 1024 * 1024
/** Above this many bytes, an answer is never reformatted. */
const mostReformatted = 64 * 1024 * 1024
/** How long a client may take to read a large response: one minute, plus its size divided by the rate below. */
const minTakeMs = 60_000
const minTakeBytesPerSecond = 256 * 1024
/**
 * The share of a chunked list's bytes that counts as held: the list shares the bytes of unchanged objects with the
 * watch cache and other lists, and alone retains only the bytes of objects that were written since.
 */
const chunksShare = 1 / 4

/** An answer that the caller must send. */
export interface Handled {
  readonly answer: SentResponse | ForwardResponse
  /** Releases what the request holds. Call it when the answer was sent or the client is gone. */
  readonly finish: () => void
}

/** Answers a request. Never rejects: every error becomes an answer. */
export function handle(request: IncomingRequest, dependencies: ServerDependencies): Promise<Handled> {
  const exchange = new Exchange(request)
  const tracer = processTracer()
  return tracer === undefined ? respond(exchange, dependencies, stages) : traced(exchange, dependencies, tracer)
}

/** Answers a request within a span, which ends before the response is sent. */
async function traced(exchange: Exchange, dependencies: ServerDependencies, tracer: Tracer): Promise<Handled> {
  const trace = new RequestTrace(exchange, tracer)
  const { answer, finish } = await respond(exchange, dependencies, trace.traced(stages))
  if (answer.kind === 'forward') return { answer: { ...answer, trace: trace.forward() }, finish }
  trace.answered(answer.status)
  return { answer, finish }
}

async function respond(exchange: Exchange, dependencies: ServerDependencies, run: readonly Stage[]): Promise<Handled> {
  const started = dependencies.clock.monotonic()
  let answer: ApiResponse
  try {
    for (const stage of run) {
      dependencies.passMonitor.mark(exchange)
      const waiting = stage(exchange, dependencies)
      if (waiting !== undefined) await waiting
      if (exchange.forwardTo !== undefined) return forwarded(exchange, exchange.forwardTo)
    }
    if (exchange.answer === undefined) throw new Error('no stage gave an answer')
    if (exchange.audit?.recordsResponse === true) exchange.answer = await recorded(exchange, exchange.answer)
    const reformatting = reformatted(exchange, exchange.answer, dependencies)
    answer = reformatting === undefined ? exchange.answer : await reformatting
    holdBytes(exchange, answer, dependencies)
    if (answer.kind === 'bytes' && takesGzip(exchange, answer)) answer = await compressBytes(answer)
  } catch (error) {
    answer = await refusal(exchange, toStatusError(error, exchange, dependencies))
  }
  const lost = endTenure(exchange, dependencies)
  if (lost !== undefined) answer = await unlessStreamed(exchange, answer, lost)
  answer = withHeaders(answer, exchange)
  exchange.audit?.started(answer)
  if (answer.kind !== 'stream' && answer.kind !== 'push')
    measure(exchange, answer, dependencies, dependencies.clock.monotonic() - started)
  return { answer: sent(answer, exchange, dependencies), finish: finishOf(exchange, answer) }
}

/** Gives the answer to the audit log, if it is an object or a list; a list in chunks is joined for that. */
async function recorded(exchange: Exchange, answer: ApiResponse): Promise<ApiResponse> {
  if (answer.kind === 'stream' || answer.kind === 'push') return answer
  if (answer.headers['content-type']?.startsWith('application/json') !== true) return answer
  if (answer.kind === 'chunks' && answer.about > maxAuditedBytes) {
    exchange.audit?.answered(undefined)
    return answer
  }
  const whole = answer.kind === 'chunks' ? await joinedInTurns(answer, exchange) : answer
  if (whole === undefined) return answer
  exchange.audit?.answered(whole.body)
  return whole
}

/** The request is neither audited nor measured here: the process that answers it does both. */
function forwarded(exchange: Exchange, to: Peer): Handled {
  exchange.audit?.discard()
  const { cleanups } = exchange
  return {
    answer: { kind: 'forward', to, isLongRunning: isLongRunning(exchange.info) },
    finish: () => finish(cleanups),
  }
}

/**
 * Replaces the answer by the refusal `lost`, because this process does not own the logical cluster any more. Called
 * last, so that nothing of the old answer is sent. A stream is kept.
 */
async function unlessStreamed(exchange: Exchange, answer: ApiResponse, lost: StatusError): Promise<ApiResponse> {
  // A stream, such as a log, comes from the member, whichever process owns the logical cluster.
  if (answer.kind === 'stream') return answer
  if (answer.kind === 'push') answer.drop()
  return await refusal(exchange, lost)
}

async function refusal(exchange: Exchange, error: StatusError): Promise<ApiResponse> {
  exchange.audit?.failed(error.status)
  const answer = errorResponse(error)
  return (await reformatted(exchange, answer)) ?? answer
}

/**
 * The StatusError for the client. Unexpected errors are logged in full and answered as InternalError without details.
 */
export function toStatusError(
  error: unknown,
  exchange: Exchange,
  { log }: Pick<ServerDependencies, 'log'>,
): StatusError {
  if (isStatusError(error)) {
    if (error.code >= 500) log.warn('request failed', { url: exchange.request.url, error })
    return error
  }
  // The store or the logical cluster may be closed between two stages; that is no bug.
  const status = fromStoreError(error, { group: '', resource: '' }, '')
  if (isStoreError(error) && isStatusError(status)) return status
  // The deadline aborts with a StatusError. Otherwise the client is gone, or the server stops.
  const reason: unknown = exchange.signal.reason
  if (exchange.signal.aborted && isStatusError(reason)) return reason
  // The client does not read this response, but the audit log records it.
  if (exchange.request.signal.aborted) return serviceUnavailable('the client went away before the response', error)
  if (exchange.signal.aborted) return serviceUnavailable('the server is stopping, please try again', error)
  exchange.audit?.panicked()
  log.error('request failed with an unexpected error', {
    method: exchange.request.method,
    url: exchange.request.url,
    error,
  })
  return internalError('an error on the server has prevented the request from succeeding', error)
}

/** Reserves memory for a large answer, so that clients that do not read cannot exhaust it. Throws 429. */
function holdBytes(exchange: Exchange, answer: ApiResponse, { fairness }: ServerDependencies): void {
  if (exchange.info.entryPoint === 'loopback' || exchange.user.realm.kind === 'installation') return
  const bytes = heldBytes(answer)
  if (bytes > 0) exchange.cleanups.push(fairness.hold(exchange.cluster?.id ?? '-', bytes))
}

function heldBytes(answer: ApiResponse): number {
  if (answer.kind === 'chunks') return answer.held ?? Math.ceil(answer.about * chunksShare)
  return answer.kind === 'bytes' && answer.body.length > largeResponseBytes ? answer.body.length : 0
}

/**
 * Reformats the answer as YAML or protobuf if the client asks for it, and indents it if the client asks for it or is
 * curl, Wget or a browser, as kube-apiserver does. Undefined: the answer stays as it is.
 */
function reformatted(
  exchange: Exchange,
  answer: ApiResponse,
  { offload }: Partial<ServerDependencies> = {},
): Promise<ApiResponse> | undefined {
  if (answer.kind === 'stream' || answer.kind === 'push' || exchange.request.loopbackUser !== undefined)
    return undefined
  const query = exchange.isUnderstood ? exchange.info.query.get('pretty') : null
  if (exchange.isUnderstood && !isObjectOrList(exchange.info.target)) return undefined
  const pretty =
    query === null || query === '' ? isReadByPeople(exchange) && sizeOf(answer) <= maxUnaskedIndentBytes : isTrue(query)
  const isError = answer.status >= 400
  const accept = exchange.header('accept')
  const isJson = accept === undefined || accept === 'application/json'
  const format = isJson ? 'json' : preferredFormat(accept, { isError, hasProtobuf: hasProtobuf(exchange) })
  if ((!pretty && format === 'json') || answer.headers['content-type'] !== 'application/json') return undefined
  return inForm({ format, pretty }, answer, exchange, offload)
}

async function inForm(
  form: ReadableForm,
  answer: BytesResponse | ChunkedResponse,
  exchange: Exchange,
  offload: ServerDependencies['offload'] | undefined,
): Promise<ApiResponse> {
  if (sizeOf(answer) > mostReformatted) return notReformatted(answer, form)
  const whole = answer.kind === 'chunks' ? await joinedInTurns(answer, exchange) : answer
  if (whole === undefined) return notReformatted(answer, form)
  const effort = effortToReformat(whole.body, form.format)
  if (effort === 'too much') return notReformatted(whole, form)
  return offload !== undefined && effort === 'much'
    ? offload.reformat(whole, form, { exchange })
    : reformat(whole, form)
}

/**
 * Joins the chunks, encoding each in a turn. Undefined if they have too many bytes together: defaults can make an
 * object larger than its stored form.
 */
async function joinedInTurns(answer: ChunkedResponse, { turn }: Exchange): Promise<BytesResponse | undefined> {
  const { status, headers, chunks } = answer
  const parts: Uint8Array[] = []
  let bytes = 0
  for (const chunk of chunks) {
    parts.push(chunk)
    bytes += chunk.length
    if (bytes > mostReformatted) return undefined
    await turn()
  }
  return { kind: 'bytes', status, headers, body: Buffer.concat(parts) }
}

/** True for whole objects of built-in resources, and discovery. */
function hasProtobuf(exchange: Exchange): boolean {
  if (!exchange.isUnderstood) return false
  const { target } = exchange.info
  return target.kind !== 'resource' || builtInResources().some((row) => row.group === target.group)
}

/** Returns an answer that is too large to be reformatted, as it is. Throws 406 if YAML was asked for. */
function notReformatted<A extends ApiResponse>(answer: A, { format }: ReadableForm): A {
  if (format === 'yaml')
    throw notAcceptable('the answer is too large to be written as YAML, ask for JSON or for a part of it (limit)')
  return answer
}

function sent(answer: ApiResponse, exchange: Exchange, dependencies: ServerDependencies): SentResponse {
  if (answer.kind === 'bytes' || answer.kind === 'push') return answer
  if (answer.kind === 'stream') return { ...answer, chunks: watched(answer.chunks, exchange, dependencies) }
  const { bytes } = answer.chunks
  const length = bytes === undefined ? {} : { 'content-length': String(bytes) }
  const headers = { ...answer.headers, ...length }
  const chunked = { ...answer, headers, turn: exchange.turn, maxStallMs: minTakeMs, maxMs: maxSendMs(answer.about) }
  return takesGzip(exchange, answer) ? compressChunks(chunked) : chunked
}

function takesGzip(exchange: Exchange, answer: BytesResponse | ChunkedResponse): boolean {
  if (exchange.request.loopbackUser !== undefined) return false
  return isCompressed(answer, sizeOf(answer), exchange.header('accept-encoding'))
}

/** How long a client may take to read this number of bytes, milliseconds. */
export function maxSendMs(bytes: number): number {
  return minTakeMs + (bytes / minTakeBytesPerSecond) * 1000
}

const humanClients = /^(curl|Wget|Mozilla\/5\.0)/

/** True for curl, Wget and browsers; false for the page of the console, which parses what it gets. */
function isReadByPeople(exchange: Exchange): boolean {
  return exchange.request.session === undefined && humanClients.test(exchange.header('user-agent') ?? '')
}

const sizeOf = (answer: BytesResponse | ChunkedResponse): number =>
  answer.kind === 'chunks' ? answer.about : answer.body.length

/** True for paths whose answers may be reformatted; OpenAPI documents and metrics may not. */
const isObjectOrList = (target: RequestInfo['target']): boolean =>
  target.kind === 'resource' || /^\/(api|apis|version)(\/|$)/.test(target.path)

function withHeaders(answer: ApiResponse, exchange: Exchange): ApiResponse {
  const headers: Record<string, string> = { 'cache-control': 'no-cache, private', ...answer.headers }
  // Our own controllers do not use the audit id.
  if (exchange.request.loopbackUser === undefined) headers['audit-id'] = exchange.auditId
  const warning = warningHeader(exchange.warnings)
  if (warning !== undefined) headers['warning'] = warning
  return { ...answer, headers: Object.assign(headers, exchange.flowHeaders) }
}

async function* watched(
  chunks: StreamResponse['chunks'],
  exchange: Exchange,
  { log }: ServerDependencies,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    if (!exchange.signal.aborted) log.warn('a stream ended early', { url: exchange.request.url, error })
    throw error
  }
}

/**
 * The function that releases what the request holds. For a long-lived push it retains only the cleanups of the request.
 */
function finishOf({ cleanups, unlink }: Exchange, { kind }: ApiResponse): () => void {
  if (kind === 'push') unlink()
  else cleanups.push(unlink)
  return () => finish(cleanups)
}

function finish(cleanups: (() => void)[]): void {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
}

function measure(
  exchange: Exchange,
  { status }: ApiResponse,
  { metrics }: ServerDependencies,
  elapsedMs: number,
): void {
  const verb = verbLabel(exchange.isUnderstood ? exchange.info.verb : undefined)
  metrics.requestSeconds.observe(elapsedMs / 1000, { verb, code: codeLabel(status) })
}
