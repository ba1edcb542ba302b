// HTTP without a client library, for requests that no correct client sends: raw paths, raw headers, partial bodies; and
// watches line by line.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { parse } from 'yaml'
import { isRecord } from './json.ts'

export interface RawResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly body: Buffer
  /** The body as JSON. Throws where it is none. */
  readonly json: () => Record<string, unknown>
}

export interface RawRequestOptions {
  /** An object is sent as JSON. */
  readonly body?: string | Uint8Array | object
  /** Name, value, name, value, in the order sent. */
  readonly headers?: readonly string[]
  readonly signal?: AbortSignal
}

export interface WatchEvent {
  readonly type: string
  readonly object: {
    readonly kind?: string
    readonly code?: number
    readonly reason?: string
    readonly metadata: {
      readonly name?: string
      readonly namespace?: string
      readonly resourceVersion: string
      readonly labels?: Record<string, string>
      readonly annotations?: Record<string, string>
    }
    readonly data?: Record<string, string>
  }
}

export interface RawWatch extends AsyncDisposable {
  readonly status: number
  /** The next event; undefined once the server has ended the stream. Rejects after `deadlineMs` (10 s). */
  next(deadlineMs?: number): Promise<WatchEvent | undefined>
  /** All events up to the end of the stream. */
  rest(): Promise<WatchEvent[]>
}

export interface RawClient extends AsyncDisposable {
  /** Sends the path unchanged. Resolves with any answer. */
  request(method: string, path: string, options?: RawRequestOptions): Promise<RawResponse>
  /** Resolves once the headers have arrived. */
  watch(path: string): Promise<RawWatch>
  /** Asks for a protocol upgrade on a connection of its own. Resolves with any answer. */
  upgrade(path: string, headers: readonly string[]): Promise<RawUpgrade>
}

/** `socket` is set if the server switched protocols (101); the caller ends it. */
export interface RawUpgrade {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly socket?: Duplex
}

/**
 * A client with the certificate of a kubeconfig, or with none. It verifies the server's certificate if it has the
 * authority.
 */
export function openRawClient(
  options: ({ kubeconfig: string; port?: number } | { port: number }) & { /** Default 127.0.0.1. */ host?: string },
): RawClient {
  const { host = '127.0.0.1' } = options
  const agent = new Agent({ keepAlive: true, ...identityOf(options) })
  const port = options.port ?? ('kubeconfig' in options ? portOf(options.kubeconfig) : 0)
  const open = (method: string, path: string, { body, headers = [], signal }: RawRequestOptions) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const bytes = bodyBytes(body)
      const typed = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type')
      const all = [
        ...['Host', `${host}:${port}`],
        ...(bytes === undefined ? [] : ['Content-Length', String(bytes.length)]),
        ...(bytes === undefined || typed ? [] : ['Content-Type', 'application/json']),
        ...headers,
      ]
      const outgoing = httpsRequest(
        { host, port, method, path, agent, headers: all, ...(signal === undefined ? {} : { signal }) },
        resolve,
      )
      outgoing.on('error', reject)
      outgoing.end(bytes)
    })
  return {
    async request(method, path, requestOptions = {}) {
      const response = await open(method, path, requestOptions)
      const chunks: Buffer[] = []
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
      const received = Buffer.concat(chunks)
      const text = received.toString()
      const status = response.statusCode ?? 0
      return { status, headers: response.headers, text, body: received, json: () => parseObject(text) }
    },
    async watch(path) {
      const ending = new AbortController()
      const response = await open('GET', path, { signal: ending.signal })
      return rawWatch(response, ending)
    },
    upgrade(path, headers) {
      const all = [...['Host', `${host}:${port}`, 'Connection', 'Upgrade'], ...headers]
      const outgoing = httpsRequest({
        host,
        port,
        path,
        headers: all,
        agent: false,
        ...identityOf(options),
      })
      return new Promise((resolve, reject) => {
        outgoing.on('error', reject)
        outgoing.once('upgrade', ({ statusCode, headers: answered }, socket: Duplex, head) => {
          socket.unshift(head)
          resolve({ status: statusCode ?? 0, headers: answered, socket })
        })
        outgoing.once('response', (response) => {
          response.resume()
          resolve({ status: response.statusCode ?? 0, headers: response.headers })
        })
        outgoing.end()
      })
    },
    async [Symbol.asyncDispose]() {
      agent.destroy()
    },
  }
}

function rawWatch(response: IncomingMessage, ending: AbortController): RawWatch {
  const events = lines(response)
  let asked: Promise<IteratorResult<string, undefined>> | undefined
  const next: RawWatch['next'] = async (deadlineMs = 10_000) => {
    asked ??= events.next()
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error(`no event of the watch within ${deadlineMs} ms`)), deadlineMs)
    try {
      const line: IteratorResult<string, undefined> = await Promise.race([asked, late.promise])
      asked = undefined
      return line.done === true ? undefined : (JSON.parse(line.value) as WatchEvent)
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    status: response.statusCode ?? 0,
    next,
    async rest() {
      const all: WatchEvent[] = []
      for (let event = await next(); event !== undefined; event = await next()) all.push(event)
      return all
    },
    async [Symbol.asyncDispose]() {
      asked?.catch(() => undefined)
      ending.abort()
    },
  }
}

async function* lines(response: IncomingMessage): AsyncGenerator<string, undefined> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') yield part
  }
  return undefined
}

function bodyBytes(body: RawRequestOptions['body']): Uint8Array | undefined {
  if (body === undefined || body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

function parseObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value)) throw new Error(`no JSON object: ${text.slice(0, 200)}`)
  return value
}

interface KubeconfigFile {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

function read(file: string): {
  cluster: KubeconfigFile['clusters'][0]['cluster']
  user: KubeconfigFile['users'][0]['user']
} {
  const { clusters, users } = parse(readFileSync(file, 'utf8')) as KubeconfigFile
  if (clusters[0] === undefined || users[0] === undefined) throw new Error(`"${file}" has no cluster or no user`)
  return { cluster: clusters[0].cluster, user: users[0].user }
}

const portOf = (file: string): number => Number(new URL(read(file).cluster.server).port)

function identityOf(options: { kubeconfig: string } | { port: number }): object {
  if (!('kubeconfig' in options)) return { rejectUnauthorized: false }
  const { cluster, user } = read(options.kubeconfig)
  const decode = (text: string): Buffer => Buffer.from(text, 'base64')
  return {
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  }
}
