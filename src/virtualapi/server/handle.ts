// Runs the stages and makes sure that there is an answer: what was thrown becomes a Status, here and nowhere else.
import {
  internalError,
  isStatusError,
  notAcceptable,
  serviceUnavailable,
  type StatusError,
} from '../../apimachinery/status/index.ts'
import { errorAnswer, joined, largeAnswer, reformat, type ReadableForm } from '../codec/answers.ts'
import { prefersYaml } from '../codec/negotiate.ts'
import { fromStoreError } from '../registry/store-errors.ts'
import { isStoreError } from '../../store/index.ts'
import { effortToReformat } from '../codec/effort.ts'
import { isTrue } from '../request/parse-request.ts'
import type { RequestInfo } from '../request/request-info.ts'
import {
  Exchange,
  type Answer,
  type BytesAnswer,
  type IncomingRequest,
  type PiecesAnswer,
  type SentAnswer,
  type StreamAnswer,
} from '../exchange/exchange.ts'
import type { ServerParts } from './parts.ts'
import { stages } from './stages.ts'
import { warningHeader } from './warning-header.ts'

/** Above this an answer is indented only on request: it costs a decoding. */
const maxUnaskedIndentBytes = 4 * 1024 * 1024
/** Above this it is not shown in another form at all, bytes. */
const mostReformatted = 64 * 1024 * 1024
/** What a client may take for a large answer: a minute, and more for its size. */
const minTakeMs = 60_000
const minTakeBytesPerSecond = 256 * 1024
/**
 * Objects that are still as they were are shared by every list that is being sent; only what was written since is kept for
 * it alone. So a list in pieces counts for this part of its bytes.
 */
const piecesShare = 1 / 4

/** An answer, to be sent by whoever called. */
export interface Handled {
  readonly answer: SentAnswer
  /** Gives back what the request holds: to be called when the answer was taken or nobody is there to take it. */
  readonly finish: () => void
}

/** Answers a request. Never rejects, but for the client's own going away. */
export async function handle(request: IncomingRequest, parts: ServerParts): Promise<Handled> {
  const exchange = new Exchange(request)
  const started = parts.clock.monotonic()
  let answer: Answer
  try {
    for (const stage of stages) await stage(exchange, parts)
    if (exchange.answer === undefined) throw new Error('no stage gave an answer')
    answer = await shaped(exchange, exchange.answer, parts)
    holdBytes(exchange, answer, parts)
  } catch (error) {
    const failure = toStatusError(error, exchange, parts)
    answer = await shaped(exchange, errorAnswer(failure))
  }
  answer = withHeaders(answer, exchange)
  exchange.audit?.started(answer)
  if (answer.kind !== 'stream' && answer.kind !== 'push')
    measure(exchange, answer, parts, parts.clock.monotonic() - started)
  return { answer: sent(answer, exchange, parts), finish: finishOf(exchange, answer) }
}

/** The StatusError that the client is told. Bugs are logged whole and answered without the inside. */
export function toStatusError(error: unknown, exchange: Exchange, { log }: Pick<ServerParts, 'log'>): StatusError {
  if (isStatusError(error)) {
    if (error.code >= 500) log.warn('request failed', { url: exchange.request.url, error })
    return error
  }
  // Between stages the store may end, or the logical cluster: that is no bug.
  const told = fromStoreError(error, { group: '', resource: '' }, '')
  if (isStoreError(error) && isStatusError(told)) return told
  // The deadline aborts with a Status of its own; else nobody is there to read the answer, or the server stops.
  const reason: unknown = exchange.signal.reason
  if (exchange.signal.aborted)
    return isStatusError(reason) ? reason : serviceUnavailable('the server is stopping, please try again', error)
  log.error('request met a bug', { method: exchange.request.method, url: exchange.request.url, error })
  return internalError('an error on the server has prevented the request from succeeding', error)
}

/** Whoever asks for much and reads nothing may not fill our memory with answers. */
function holdBytes(exchange: Exchange, answer: Answer, { fairness }: ServerParts): void {
  if (exchange.info.way === 'loopback' || exchange.user.realm.kind === 'installation') return
  const bytes = heldBytes(answer)
  if (bytes > 0) exchange.cleanups.push(fairness.hold(exchange.cluster?.id ?? '-', bytes))
}

function heldBytes(answer: Answer): number {
  if (answer.kind === 'pieces') return Math.ceil(answer.about * piecesShare)
  return answer.kind === 'bytes' && answer.body.length > largeAnswer ? answer.body.length : 0
}

/** As YAML where that is asked for; indented for people, whom a real server knows by their tools. */
async function shaped(exchange: Exchange, answer: Answer, { offload }: Partial<ServerParts> = {}): Promise<Answer> {
  if (answer.kind === 'stream' || answer.kind === 'push' || exchange.request.loopbackUser !== undefined) return answer
  const query = exchange.isUnderstood ? exchange.info.query.get('pretty') : null
  if (exchange.isUnderstood && !isObjectOrList(exchange.info.target)) return answer
  const pretty =
    query === null || query === ''
      ? peopleUse.test(exchange.header('user-agent') ?? '') && sizeOf(answer) <= maxUnaskedIndentBytes
      : isTrue(query)
  const yaml = prefersYaml(exchange.header('accept'))
  if (!pretty && !yaml) return answer
  const form: ReadableForm = { format: yaml ? 'yaml' : 'json', pretty }
  if (sizeOf(answer) > mostReformatted) return asItIs(answer, form)
  const whole = answer.kind === 'pieces' ? joined(answer) : answer
  const effort = effortToReformat(whole.body, form.format)
  if (effort === 'too much') return asItIs(whole, form)
  return offload !== undefined && effort === 'much'
    ? offload.reformat(whole, form, { exchange })
    : reformat(whole, form)
}

/** Indented it would be nicer; who asked for YAML can read nothing else. Throws 406 then. */
function asItIs<A extends Answer>(answer: A, { format }: ReadableForm): A {
  if (format === 'yaml')
    throw notAcceptable('the answer is too large to be written as YAML, ask for JSON or for a part of it (limit)')
  return answer
}

function sent(answer: Answer, exchange: Exchange, parts: ServerParts): SentAnswer {
  if (answer.kind === 'bytes' || answer.kind === 'push') return answer
  if (answer.kind === 'stream') return { ...answer, chunks: watched(answer.chunks, exchange, parts) }
  const { bytes } = answer.pieces
  const length = bytes === undefined ? {} : { 'content-length': String(bytes) }
  const headers = { ...answer.headers, ...length }
  return { ...answer, headers, turn: exchange.turn, maxStallMs: minTakeMs, maxMs: takeMs(answer.about) }
}

/** How long a client may take for so many bytes, milliseconds. */
export function takeMs(bytes: number): number {
  return minTakeMs + (bytes / minTakeBytesPerSecond) * 1000
}

const peopleUse = /^(curl|Wget|Mozilla\/5\.0)/

const sizeOf = (answer: BytesAnswer | PiecesAnswer): number =>
  answer.kind === 'pieces' ? answer.about : answer.body.length

/** OpenAPI documents and metrics are for programs. */
const isObjectOrList = (target: RequestInfo['target']): boolean =>
  target.kind === 'resource' || /^\/(api|apis|version)(\/|$)/.test(target.path)

function withHeaders(answer: Answer, exchange: Exchange): Answer {
  const headers: Record<string, string> = { 'cache-control': 'no-cache, private', ...answer.headers }
  // Our own loops hear of no id: nobody would look for it.
  if (exchange.request.loopbackUser === undefined) headers['audit-id'] = exchange.auditId
  const warning = warningHeader(exchange.warnings)
  if (warning !== undefined) headers['warning'] = warning
  return { ...answer, headers }
}

async function* watched(
  chunks: StreamAnswer['chunks'],
  exchange: Exchange,
  { log }: ServerParts,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    if (!exchange.signal.aborted) log.warn('a stream ended early', { url: exchange.request.url, error })
    throw error
  }
}

/** Of a push, which lives long, nothing of the request is kept but what it must give back. */
function finishOf({ cleanups, unlink }: Exchange, { kind }: Answer): () => void {
  if (kind === 'push') unlink()
  else cleanups.push(unlink)
  return () => finish(cleanups)
}

function finish(cleanups: (() => void)[]): void {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
}

function measure(exchange: Exchange, { status }: Answer, { metrics }: ServerParts, elapsedMs: number): void {
  const verb = exchange.isUnderstood ? exchange.info.verb : 'unknown'
  metrics.requestSeconds.observe(elapsedMs / 1000, { verb, code: String(status) })
}
