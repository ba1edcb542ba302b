// The agent's end of the tunnel: it dials out, and serves HTTP/2 on the connection. Each stream is one connection to the
// API of its cluster; nothing else can be reached through the tunnel.
import { once } from 'node:events'
import { performServerHandshake, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { WebSocket } from 'ws'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { sleep } from '#async/index.ts'
import {
  agentCapabilities,
  asSocket,
  choiceHeaders,
  chosenVersion,
  duplexOf,
  endTogether,
  headersOf,
  keepAlive,
  sessionKinds,
  sessionSettings,
  type SessionKind,
  type TunnelOffer,
  tunnelVersions,
} from '#network/tunnel/index.ts'
import { programVersion, type Logger } from '#telemetry/index.ts'
import { connectionsTo, type ClientCertificate, type InstallationAddress } from './dial.ts'
import type { Forwarder } from './forward-requests.ts'

export interface TunnelOptions {
  readonly installation: InstallationAddress
  /** Name of the MemberCluster. */
  readonly member: string
  /** The client certificate that is valid now. */
  readonly client: () => ClientCertificate
  readonly forwarder: Forwarder
  /** What the agent says of itself. Default: the truth. */
  readonly offer?: TunnelOffer
  /** Called when a session begins or ends, with the kinds that are open. */
  readonly changed?: (open: ReadonlySet<SessionKind>) => void
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Milliseconds after which a session is replaced by a new one. */
const renewMs = 4 * 60 * 60_000
/** Milliseconds for which a replaced session may finish its connections. */
const finishMs = 10 * 60_000
/** Milliseconds after which a session that ends was a good one: the next attempt is made at once. */
const goodMs = 10_000
const handshakeMs = 30_000
/** Milliseconds between two attempts to connect: the first, and the longest. */
const [firstWaitMs, maxWaitMs] = [500, 8000]
const maxMessageBytes = 8 * 1024 * 1024
const maxRefusalBytes = 4096

const ownOffer: TunnelOffer = {
  versions: tunnelVersions,
  capabilities: agentCapabilities,
  program: programVersion,
}

/** Keeps a session of each kind open until the signal aborts. */
export async function keepTunnel(options: TunnelOptions): Promise<void> {
  const open = new Set<SessionKind>()
  const tell = (kind: SessionKind, isOpen: boolean): void => {
    if (isOpen) open.add(kind)
    else open.delete(kind)
    options.changed?.(open)
  }
  await Promise.all(sessionKinds.map((kind) => keepSession(kind, options, tell)))
}

async function keepSession(
  kind: SessionKind,
  options: TunnelOptions,
  tell: (kind: SessionKind, isOpen: boolean) => void,
): Promise<void> {
  const { log, signal } = options
  let waitMs = firstWaitMs
  const isStopped = (): boolean => signal.aborted
  while (!isStopped()) {
    try {
      const session = await openSession(kind, options)
      tell(kind, true)
      log.info('connected to the installation', { session: kind })
      const began = performance.now()
      const isOver = await endOf(session, signal)
      if (!isOver) {
        retire(session)
        continue
      }
      tell(kind, false)
      if (performance.now() - began > goodMs) waitMs = firstWaitMs
      if (!isStopped()) log.warn('the connection to the installation was lost', { session: kind })
    } catch (error) {
      if (isStopped()) return
      log.warn('cannot connect to the installation', { session: kind, error })
    }
    // At random, so that the agents of all members do not come at once after a restart of the installation.
    await sleep(waitMs * (0.5 + Math.random() * 0.5), signal).catch(() => undefined)
    waitMs = Math.min(waitMs * 2, maxWaitMs)
  }
}

async function openSession(kind: SessionKind, options: TunnelOptions): Promise<Http2Session> {
  const { installation, member, client, forwarder, offer = ownOffer, signal } = options
  const url = `${installation.url.replace(/^http/, 'ws')}/services/agent/${member}/tunnel?session=${kind}`
  const webSocket = new WebSocket(url, {
    agent: connectionsTo(installation, client()),
    headers: headersOf(offer),
    perMessageDeflate: false,
    // Masks protect proxies that read WebSockets. Within TLS no proxy does, and masks would cost a pass over all bytes.
    generateMask: (mask) => mask.fill(0),
    handshakeTimeout: handshakeMs,
    maxPayload: maxMessageBytes,
    followRedirects: false,
  })
  // Created before the WebSocket is open: the first message may come with the handshake.
  const stream = duplexOf(webSocket)
  stream.on('error', () => undefined)
  await opened(webSocket, offer, signal)
  const session = performServerHandshake(stream, sessionSettings)
  session.on('error', () => undefined)
  endTogether(session, webSocket)
  session.on('stream', (stream, headers) => accept(stream, headers, forwarder))
  keepAlive(session)
  return session
}

/**
 * Resolves when the WebSocket is open. Rejects with the text of the server if the server refuses it, and if the server
 * has chosen a version that the agent does not speak.
 */
async function opened(webSocket: WebSocket, { versions }: TunnelOffer, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  webSocket.once('upgrade', ({ headers }) => {
    const chosen = chosenVersion(headers[choiceHeaders.version])
    if (!versions.includes(chosen))
      reject(
        new Error(
          `the installation speaks version ${chosen} of the tunnel, and this agent ${versions.join(', ')}: update the installation first, or run the agent of its version`,
        ),
      )
  })
  webSocket.once('open', () => resolve(undefined))
  webSocket.on('error', reject)
  webSocket.once('unexpected-response', (_, response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      if (text.length < maxRefusalBytes) text += part
    })
    response.on('error', reject)
    response.once('close', () =>
      reject(new Error(`the installation answered ${response.statusCode}: ${messageIn(text)}`)),
    )
  })
  try {
    await promise
  } catch (error) {
    webSocket.terminate()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function messageIn(text: string): string {
  try {
    const { message } = parseJsonText(text) as { message?: unknown }
    if (typeof message === 'string') return message
  } catch {
    // It is the text of something between us and the installation.
  }
  return text.slice(0, 200)
}

function accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, forwarder: Forwarder): void {
  stream.on('error', () => undefined)
  if (headers[':method'] !== 'CONNECT' || headers[':authority'] !== 'api') {
    stream.respond({ ':status': 403 }, { endStream: true })
    return
  }
  stream.respond({ ':status': 200 })
  forwarder.serve(asSocket(stream))
}

/** Resolves with true when the session has ended, and with false when it is time to replace it. */
async function endOf(session: Http2Session, signal: AbortSignal): Promise<boolean> {
  const waiting = new AbortController()
  const closed = session.destroyed ? Promise.resolve(true) : once(session, 'close', waiting).then(() => true)
  const stop = (): void => session.destroy()
  signal.addEventListener('abort', stop, { once: true })
  const due = sleep(renewMs * (0.9 + Math.random() * 0.2), waiting.signal).then(() => false)
  try {
    return await Promise.race([closed, due])
  } finally {
    closed.catch(() => undefined)
    due.catch(() => undefined)
    waiting.abort()
    signal.removeEventListener('abort', stop)
  }
}

function retire(session: Http2Session): void {
  session.close()
  const timer = setTimeout(() => session.destroy(), finishMs).unref()
  session.once('close', () => clearTimeout(timer))
}
