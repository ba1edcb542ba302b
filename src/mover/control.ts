// The client with which the operator drives movers. Each call opens one connection through `dial`, for example a
// port-forward of the pod, with TLS to the mover inside.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { childSignal } from '#async/index.ts'
import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import {
  identityOf,
  isIdentity,
  MoverError,
  parseErrorBody,
  type MoverRole,
  type MoverStatus,
  type PartyCredentials,
  type RoundOptions,
  type RoundProgress,
  type RoundResult,
  type Survey,
  type SurveyProgress,
} from './contract/index.ts'
import { isCertificateError } from './wire/peer-connection.ts'

/** Opens a connection to the mover's port. The signal ends the attempt and, later, the connection. */
export type Dial = (signal: AbortSignal) => Promise<Duplex>

/**
 * Opens a connection within a time, in milliseconds, that does not bound the life of the connection. Rejects with the
 * reason of the signal, or with the error of `dial`.
 */
export async function dialWithin(dial: Dial, withinMs: number, signal: AbortSignal): Promise<Duplex> {
  const life = childSignal(signal)
  const late = (): void => life.abort(new DOMException(`no connection within ${withinMs} ms`, 'TimeoutError'))
  const timer = setTimeout(late, withinMs)
  try {
    life.signal.throwIfAborted()
    const stream = await dial(life.signal)
    stream.once('close', () => life[Symbol.dispose]())
    return stream
  } catch (error) {
    life[Symbol.dispose]()
    signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

export interface MoverControl {
  /** Rejects with PeerLost if the mover is not reached, PeerRefused if it is another one than expected. */
  status(signal: AbortSignal): Promise<MoverStatus>
  /** Counts what the source has. Aborting the signal ends the survey. */
  survey(onProgress: (progress: SurveyProgress) => void, signal: AbortSignal): Promise<Survey>
  /** Runs a round on the target. Aborting the signal ends the round; the next one continues. */
  round(options: RoundOptions, onProgress: (progress: RoundProgress) => void, signal: AbortSignal): Promise<RoundResult>
  /**
   * Opens the way to the source for a round with `relay`: the bytes of the stream are the target's TLS connection. The
   * caller pipes them to the source's port. A round takes one relay; open it at any time from a minute before it.
   */
  relay(signal: AbortSignal): Promise<Duplex>
}

export interface MoverControlOptions {
  /** The credentials of party `control`. */
  readonly credentials: PartyCredentials
  /** The mover at the other end of `dial`. */
  readonly role: MoverRole
  readonly dial: Dial
  /** Milliseconds to wait for a connection and for the first byte of a response. */
  readonly timeoutMs?: number
}

const maxLineLength = 1 << 20
/** A mover sends a line of progress each second. */
const silenceMs = 60_000

export function createMoverControl(options: MoverControlOptions): MoverControl {
  return {
    status: async (signal) => {
      const lines = await call(options, { method: 'GET', path: '/status' }, signal)
      return lastLine(lines, () => undefined) as Promise<MoverStatus>
    },
    survey: async (onProgress, signal) => {
      const lines = await call(options, { method: 'POST', path: '/survey' }, signal)
      return lastLine(lines, (progress) => onProgress(progress as SurveyProgress)) as Promise<Survey>
    },
    round: async (round, onProgress, signal) => {
      const lines = await call(options, { method: 'POST', path: '/rounds', body: JSON.stringify(round) }, signal)
      return lastLine(lines, (progress) => onProgress(progress as RoundProgress)) as Promise<RoundResult>
    },
    relay: (signal) => openRelay(options, signal),
  }
}

interface Call {
  readonly method: string
  readonly path: string
  readonly body?: string
}

async function connect({ credentials, role, dial, timeoutMs = 15_000 }: MoverControlOptions, outer: AbortSignal) {
  const signal = AbortSignal.any([outer, AbortSignal.timeout(timeoutMs)])
  const { move } = identityOf(credentials['tls.crt'])
  const socket = await dialWithin(dial, timeoutMs, outer).catch((cause: unknown) => {
    outer.throwIfAborted()
    throw new MoverError('PeerLost', `the ${role} mover of "${move}" is not reached: ${String(cause)}`, { cause })
  })
  return secure(socket, { credentials, move, role }, signal)
}

interface Peer {
  readonly credentials: PartyCredentials
  readonly move: string
  readonly role: MoverRole
}

async function secure(socket: Duplex, { credentials, move, role }: Peer, signal: AbortSignal): Promise<TLSSocket> {
  const tls = connectTls({
    socket,
    ca: credentials['ca.crt'],
    cert: credentials['tls.crt'],
    key: credentials['tls.key'],
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_host, { subjectaltname }) =>
      isIdentity(subjectaltname, move, role)
        ? undefined
        : new MoverError('PeerRefused', `the server is not the ${role} mover of "${move}": ${String(subjectaltname)}`),
  })
  const lose = (): unknown => tls.destroy(signal.reason as Error)
  socket.on('error', (error: Error) => tls.destroy(error))
  signal.addEventListener('abort', lose, { once: true })
  try {
    await once(tls, 'secureConnect')
  } catch (cause) {
    tls.on('error', () => undefined).destroy()
    socket.destroy()
    if (cause instanceof MoverError) throw cause
    const isIdentityError = isCertificateError(cause)
    const message = `no TLS connection with the ${role} mover of "${move}": ${String(cause)}`
    throw new MoverError(isIdentityError ? 'PeerRefused' : 'PeerLost', message, { cause })
  } finally {
    signal.removeEventListener('abort', lose)
  }
  tls.on('error', () => undefined)
  tls.once('close', () => socket.destroy())
  return tls
}

async function call(options: MoverControlOptions, what: Call, signal: AbortSignal): Promise<IncomingMessage> {
  const { move } = identityOf(options.credentials['tls.crt'])
  const tls = await connect(options, signal)
  const sent = request({ ...requestOf(what), createConnection: () => tls, signal })
  sent.setTimeout(silenceMs, () => sent.destroy(new Error('the mover has sent nothing for a minute')))
  sent.end(what.body)
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return response
  } catch (cause) {
    tls.destroy()
    signal.throwIfAborted()
    const kind = isCertificateError(cause) ? 'PeerRefused' : 'PeerLost'
    throw new MoverError(kind, `the ${options.role} mover of "${move}" does not answer: ${String(cause)}`, { cause })
  }
}

const requestOf = ({ method, path, body }: Call) => ({
  method,
  path,
  host: 'mover',

  headers: { connection: 'close', ...(body !== undefined && { 'content-type': 'application/json' }) },
})

/** Passes each progress on; resolves with the result of the last line, or rejects with its error. */
async function lastLine(response: IncomingMessage, onProgress: (progress: unknown) => void): Promise<unknown> {
  const lost = (cause?: unknown): MoverError =>
    new MoverError('PeerLost', `the mover ended its answer before the result`, { cause })
  try {
    for await (const line of boundedLines(response)) {
      const { progress, result, error } = parseLine(line)
      if (error !== undefined) throw parseErrorBody(error)
      if (result !== undefined) return result
      onProgress(progress)
    }
  } catch (error) {
    if (error instanceof MoverError || (error as Error).name === 'AbortError') throw error
    throw lost(error)
  } finally {
    response.destroy()
  }
  throw lost()
}

/** The lines of a response. A line that is longer than any of ours ends it. */
async function* boundedLines(response: IncomingMessage): AsyncIterable<string> {
  let rest = ''
  response.setEncoding('utf8')
  for await (const chunk of response as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > maxLineLength) throw new Error('the mover sent a line that is too long')
    yield* lines
  }
}

function parseLine(line: string): { progress?: unknown; result?: unknown; error?: unknown } {
  try {
    const parsed: unknown = parseJsonText(line)
    if (typeof parsed === 'object' && parsed !== null) return parsed
  } catch (cause) {
    throw new MoverError('ProtocolViolated', 'the mover sent a line that is no JSON', { cause })
  }
  throw new MoverError('ProtocolViolated', 'the mover sent a line that is no object')
}

async function openRelay(options: MoverControlOptions, signal: AbortSignal): Promise<Duplex> {
  const tls = await connect(options, signal)
  // The caller has a pipeline in each direction, and each adds several listeners.
  tls.setMaxListeners(30)
  const headers = { connection: 'Upgrade', upgrade: 'kcp-mover-relay' }
  const sent = request({
    method: 'GET',
    path: '/relay',
    host: 'mover',

    headers,
    createConnection: () => tls,
  })
  const opened = Promise.withResolvers<Duplex>()
  sent.once('upgrade', (_response, _socket, head) => {
    if (head.length > 0) tls.unshift(head)
    opened.resolve(tls)
  })
  sent.once('response', (response) => {
    response.resume()
    opened.reject(new MoverError('Busy', `the target mover refuses a relay: ${String(response.statusCode)}`))
  })
  sent.once('error', (cause) => opened.reject(new MoverError('PeerLost', 'the target mover is lost', { cause })))
  sent.end()
  const stop = (): unknown => tls.destroy()
  signal.addEventListener('abort', stop, { once: true })
  tls.once('close', () => signal.removeEventListener('abort', stop))
  return opened.promise
}
