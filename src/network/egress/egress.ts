// Every outbound call that tenants' data causes: webhooks, conversion, APIServices, proxies. Resolves a name, checks
// its addresses and connects to a permitted one, over TLS, without following redirects, within bounds of time and size.
import type { ClientRequest, IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect as connectTcp, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  connect as connectTls,
  createSecureContext,
  type ConnectionOptions,
  type SecureContext,
  type SecureContextOptions,
  type TLSSocket,
} from 'node:tls'
import { LRUCache } from 'lru-cache'
import { abortable, childSignal, endAfterInterim, KeyedMutex } from '#async/index.ts'
import {
  type AddressPolicy,
  type AddressPolicyOptions,
  createAddressPolicy,
  createResolveHost,
  type ResolveHost,
} from './address-policy.ts'
import { CallLimits, type CallBounds, type EnteredCall } from './call-limits.ts'
import { EgressError, egressError } from './egress-error.ts'

export interface EgressOptions extends AddressPolicyOptions {
  /** Name servers as `address` or `address:port`. Default: those of this machine. */
  readonly nameServers?: readonly string[]
  readonly bounds?: CallBounds
  /** Called for every call that has ended: `answered` with any status, `failed`, or `aborted` by its caller. */
  readonly observe?: (outcome: 'answered' | 'failed' | 'aborted', seconds: number) => void
}

/** A connection that the caller makes, to an endpoint whose address needs no check: a pod of the tenant. */
export interface Tunnel {
  /** Calls with equal keys and ports may share connections. */
  readonly key: string
  readonly port: number
  /** The signal also ends the opened connection. Rejects with EgressError. */
  open(signal: AbortSignal): Promise<Duplex>
}

export interface EgressCall {
  /** Id of the logical cluster whose data causes the call: the call is charged to it. */
  readonly cluster: string
  /** The https URL. */
  readonly url: URL
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** PEM certificates to trust. Default: those that Node trusts. */
  readonly caBundle?: string
  /** True: any certificate of the server is accepted. */
  readonly insecure?: boolean
  /** The client certificate and its private key, PEM. */
  readonly client?: { readonly certificate: string; readonly key: string }
  /** The address and port to connect to instead of the URL's host, checked like any other address. */
  readonly dial?: { readonly address: string; readonly port: number }
  /** The connection to use instead of one to an address. */
  readonly tunnel?: Tunnel
  /** Time limit of the whole call in milliseconds, waiting for other calls included. */
  readonly timeoutMs: number
  /** A call with a longer response rejects with EgressError. Default 8 MiB. */
  readonly maxResponseBytes?: number
  /**
   * Reads the response while its bytes are still charged to the logical cluster, one of the cluster's responses at a
   * time. If it rejects, the call rejects with the same error. Afterwards the caller should hold less than the
   * response.
   */
  readonly reading?: (answer: EgressResponse) => Promise<void>
  readonly signal: AbortSignal
}

/** A connection over which its owner speaks HTTP/1.1; `timeoutMs` bounds the opening alone. */
export type EgressConnection = Pick<
  EgressCall,
  'cluster' | 'url' | 'caBundle' | 'insecure' | 'client' | 'dial' | 'tunnel' | 'timeoutMs' | 'signal'
>

export interface EgressResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface Egress extends AsyncDisposable {
  /**
   * Rejects with EgressError if there was no complete response, with signal.reason when aborted. Any status resolves.
   */
  call(call: EgressCall): Promise<EgressResponse>
  /**
   * Opens a connection of its own, which ends with the signal. Rejects as `call`. The caller limits the number of
   * connections: calls are counted here, connections are not.
   */
  connect(connection: EgressConnection): Promise<Duplex>
  /**
   * Ends the calls of the logical cluster whose unfinished responses hold the most memory. For use when memory is
   * short. Returns the id of the logical cluster and the bytes that this frees; undefined if there is little to free.
   */
  shed(): { readonly cluster: string; readonly bytes: number } | undefined
}

const defaultMaxResponseBytes = 8 * 1024 * 1024
/** Memory of a chunk of a response besides its bytes: a server may send bytes one by one. */
const chunkBytes = 128
/** Minimum bytes for which `shed` ends calls. */
const minShedBytes = 4 * 1024 * 1024
/** Maximum number of idle connections, over all logical clusters. */
const maxIdle = 256
const idleMs = 30_000

/** Creates the module of outbound calls. Disposing of it closes its idle connections. */
export function createEgress({
  nameServers,
  bounds,
  observe = () => undefined,
  ...policy
}: EgressOptions = {}): Egress {
  return new NodeEgress({
    policy: createAddressPolicy(policy),
    resolve: createResolveHost(nameServers === undefined ? {} : { servers: nameServers }),
    limits: new CallLimits(bounds),
    reading: new KeyedMutex(),
    observe,
  })
}

interface Dependencies {
  readonly policy: AddressPolicy
  readonly resolve: ResolveHost
  readonly limits: CallLimits
  /**
   * Lets each logical cluster read one response at a time, because a response that is read takes more memory than its
   * bytes.
   */
  readonly reading: KeyedMutex
  readonly observe: NonNullable<EgressOptions['observe']>
}

/** Keeps connections by address, server name, authority and client certificate (`https.Agent.getName`). */
class BoundedAgent extends https.Agent {
  override keepSocketAlive(socket: Duplex): boolean {
    const idle = Object.values(this.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0)
    if (idle >= maxIdle) return false
    // Node's type declares no result, but the documented result decides.
    const keep: (kept: Duplex) => unknown = (kept) => super.keepSocketAlive(kept)
    return keep(socket) === true
  }

  override createConnection(
    options: https.RequestOptions & Partial<Tunneled>,
    done?: (error: Error | null, socket: Duplex) => void,
  ): Duplex | null | undefined {
    const { tunnel, opening } = options
    if (tunnel === undefined || opening === undefined) return super.createConnection(options, done)
    openTunnel({ tunnel, opening }, options as ConnectionOptions).then(
      (socket) => done?.(null, socket),
      // Calls back without a socket, as Node itself does.
      (error: unknown) => done?.(error as Error, undefined as unknown as Duplex),
    )
    return undefined
  }
}

interface Tunneled {
  readonly tunnel: Tunnel
  /** Ends the attempt to open the tunnel. An opened connection may serve other calls afterwards. */
  readonly opening: AbortSignal
}

function definedOnly<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}

/** TLS through a tunnel: the proxy cannot read the bytes that it passes on. */
async function openTunnel({ tunnel, opening }: Tunneled, options: ConnectionOptions): Promise<TLSSocket> {
  const life = new AbortController()
  const abort = (): void => life.abort(opening.reason)
  opening.addEventListener('abort', abort, { once: true })
  try {
    opening.throwIfAborted()
    const socket = await tunnel.open(life.signal)
    socket.once('close', () => life.abort())
    const { servername, secureContext, ALPNProtocols, rejectUnauthorized } = options
    const tls = { servername, secureContext, ALPNProtocols, rejectUnauthorized }
    const secure = connectTls({ socket, ...definedOnly(tls) })
    // Between two calls there is no other listener, and an error without a listener would end the process.
    secure.on('error', () => undefined)
    return secure
  } finally {
    opening.removeEventListener('abort', abort)
  }
}

/** A TCP connection to an address that was checked. */
function tcpTunnel(address: string, port: number): Tunnel {
  return {
    key: address,
    port,
    open: (signal) =>
      new Promise((resolve, reject) => {
        const socket = connectTcp({ host: address, port, signal })
        socket.once('error', reject)
        socket.once('connect', () => resolve(socket))
      }),
  }
}

/** Resolves after the handshake. Afterwards the connection ends with `life`. */
async function secured(socket: TLSSocket, until: { opening: AbortSignal; life: AbortSignal }): Promise<TLSSocket> {
  const handshake = new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
    socket.once('close', () => reject(new EgressError('EOF')))
  })
  try {
    await abortable(handshake, until.opening)
  } catch (error) {
    socket.destroy()
    throw error
  }
  const end = (): void => void socket.destroy()
  until.life.addEventListener('abort', end, { once: true })
  socket.once('close', () => until.life.removeEventListener('abort', end))
  return socket
}

/** A call with the account of its response's bytes. */
type ChargedCall = EgressCall & Pick<EnteredCall, 'hold'>

class NodeEgress implements Egress {
  readonly #dependencies: Dependencies
  readonly #agent = new BoundedAgent({ keepAlive: true, maxFreeSockets: 4, timeout: idleMs, maxCachedSessions: 64 })

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  async call(call: EgressCall): Promise<EgressResponse> {
    const started = performance.now()
    const ended = (outcome: Parameters<Dependencies['observe']>[0]): void =>
      this.#dependencies.observe(outcome, (performance.now() - started) / 1000)
    try {
      const answer = await this.#bounded(call)
      ended('answered')
      return answer
    } catch (error) {
      ended(call.signal.aborted ? 'aborted' : 'failed')
      throw error
    }
  }

  async connect(connection: EgressConnection): Promise<Duplex> {
    const { url, dial, signal } = connection
    using opening = childSignal(signal)
    const timer = setTimeout(() => opening.abort(new EgressError('context deadline exceeded')), connection.timeoutMs)
    const port = dial?.port ?? Number(url.port || 443)
    let place = connection.tunnel?.key ?? url.hostname
    try {
      let { tunnel } = connection
      if (tunnel === undefined) {
        const [address = ''] = await this.#addressesFor(connection, opening.signal)
        place = address
        tunnel = tcpTunnel(address, port)
      }
      return await secured(await openTunnel({ tunnel, opening: opening.signal }, tlsOf(connection)), {
        opening: opening.signal,
        life: signal,
      })
    } catch (error) {
      if (opening.signal.aborted) throw opening.signal.reason
      throw egressError(error as Error, { address: `${place}:${port}`, host: url.hostname })
    } finally {
      clearTimeout(timer)
    }
  }

  shed(): { readonly cluster: string; readonly bytes: number } | undefined {
    return this.#dependencies.limits.shed(minShedBytes)
  }

  async #bounded(call: EgressCall): Promise<EgressResponse> {
    using life = childSignal(call.signal)
    const timer = setTimeout(() => life.abort(new EgressError('context deadline exceeded')), call.timeoutMs)
    try {
      // The destination includes the path, because several webhooks may share a server.
      const destination = `${call.url.host}${call.url.pathname}`
      const caller = { cluster: call.cluster, destination, bytes: call.body?.length ?? 0 }
      using entered = await this.#dependencies.limits.enter(caller, life.signal)
      const end = (): void => life.abort(entered.ended.reason)
      entered.ended.addEventListener('abort', end, { once: true })
      const answer = await this.#send({ ...call, hold: (bytes) => entered.hold(bytes) }, life.signal)
      clearTimeout(timer)
      if (call.reading !== undefined) await this.#read(call, answer, call.reading)
      return answer
    } finally {
      clearTimeout(timer)
    }
  }

  async #read(
    { cluster, signal }: EgressCall,
    answer: EgressResponse,
    reading: NonNullable<EgressCall['reading']>,
  ): Promise<void> {
    const release = await this.#dependencies.reading.take(cluster, signal)
    try {
      await reading(answer)
    } finally {
      release()
    }
  }

  async #send(call: ChargedCall, signal: AbortSignal): Promise<EgressResponse> {
    if (call.url.protocol !== 'https:') throw new EgressError(`the URL must be https, not ${call.url.protocol}`)
    const { tunnel } = call
    if (tunnel !== undefined) {
      const place = { host: `pod ${tunnel.key}`, port: tunnel.port, tunnel, opening: signal }
      return await exchange(call, { ...tlsOf(call), agent: this.#agent, ...place }, signal)
    }
    const port = call.dial?.port ?? Number(call.url.port || 443)
    let failure: unknown
    for (const address of await this.#addressesFor(call, signal)) {
      try {
        return await exchange(call, { ...tlsOf(call), agent: this.#agent, host: address, port }, signal)
      } catch (error) {
        failure = error
        // Another address is tried only if this one was not reached at all.
        if (!(error instanceof EgressError && error.message.startsWith('dial tcp '))) break
      }
    }
    throw failure
  }

  async #addressesFor(
    { url, dial }: Pick<EgressCall, 'url' | 'dial'>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const addresses = dial === undefined ? await this.#dependencies.resolve(url.hostname, signal) : [dial.address]
    const judged = addresses.map((address) => ({ address, why: this.#dependencies.policy.refusal(address) }))
    const permitted = judged.filter(({ why }) => why === undefined).map(({ address }) => address)
    if (permitted.length > 0) return permitted
    const [first] = judged
    throw new EgressError(`dialing ${url.host} is not permitted: it is ${first?.why ?? 'without an address'}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
  }
}

/** SNI carries names only; without it Node checks the certificate against the address. */
function tlsOf({ url, caBundle, insecure, client }: Pick<EgressCall, 'url' | 'caBundle' | 'insecure' | 'client'>) {
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const trust = {
    minVersion: 'TLSv1.2',
    // As in Go, a certificate of the bundle is trusted even if its own issuer is not in it.
    allowPartialTrustChain: true,
    ...(caBundle === undefined ? {} : { ca: caBundle }),
    ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
  } as const
  return {
    servername: isIP(name) === 0 ? name : '',
    ALPNProtocols: ['http/1.1'],
    ...(insecure === true ? { rejectUnauthorized: false } : {}),
    // The agent distinguishes connections by these options; the context contains them already.
    ...trust,
    secureContext: secureContextOf(trust),
  } as const
}

const secureContexts = new LRUCache<string, SecureContext>({
  max: 1000,
  maxSize: 16 * 1024 * 1024,
  sizeCalculation: (_context, key) => key.length,
})

/**
 * The TLS context for these options, shared by connections: reading the authorities takes as long as the rest of
 * opening a connection.
 */
function secureContextOf(trust: SecureContextOptions): SecureContext {
  const key = JSON.stringify(trust)
  let context = secureContexts.get(key)
  if (context === undefined) secureContexts.set(key, (context = createSecureContext(trust)))
  return context
}

/**
 * One request on one connection. A kept connection that turned out to be closed is replaced once: it brought no
 * response.
 */
async function exchange(
  call: ChargedCall,
  options: https.RequestOptions & Partial<Tunneled>,
  signal: AbortSignal,
  retried = false,
): Promise<EgressResponse> {
  const { url, method, body, headers, maxResponseBytes = defaultMaxResponseBytes } = call
  const length = body === undefined ? {} : { 'content-length': String(body.length) }
  const all = { host: url.host, 'accept-encoding': 'identity', ...headers, ...length }
  const sent = https.request({ ...options, method, path: `${url.pathname}${url.search}`, headers: all })
  // An error after this function has ended has no other listener, and would end the process.
  sent.on('error', () => undefined)
  const abort = (): void => void sent.destroy(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    const response = await responseOf(sent, body)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxResponseBytes) throw new EgressError(`the answer is longer than ${maxResponseBytes} bytes`)
      chunks.push(chunk)
      await call.hold(chunk.length + chunkBytes)
    }
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }
  } catch (error) {
    sent.destroy()
    if (signal.aborted) throw signal.reason
    const { code } = error as NodeJS.ErrnoException
    if (sent.reusedSocket && !retried && (code === 'ECONNRESET' || code === 'EPIPE'))
      return await exchange(call, options, signal, true)
    const { host = '', port = '' } = options
    throw egressError(error as Error, { address: `${host ?? ''}:${port ?? ''}`, host: url.hostname })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function responseOf(sent: ClientRequest, body: Uint8Array | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    endAfterInterim(sent, () => new EgressError('net/http: too many 1xx informational responses'))
    sent.once('response', resolve)
    sent.on('error', reject)
    // A response that switches protocols would leave an open connection without an owner.
    sent.once('upgrade', (_response, socket: Duplex) => {
      socket.destroy()
      reject(new EgressError('net/http: the server switched protocols'))
    })
    sent.end(body)
  })
}
