// An HTTP client for recorded histories: requests and watches of one logical cluster, or of all, by a kubeconfig.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { parse } from 'yaml'

export interface ApiResponse {
  readonly status: number
  readonly body: Json
}

/** The JSON of an answer; every field may be missing. */
export interface Json {
  readonly kind?: string
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly type?: string
  readonly object?: Json
  readonly metadata?: {
    readonly name?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly continue?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
  readonly details?: { readonly uid?: string }
  readonly items?: readonly Json[]
}

export interface Client extends Disposable {
  /** Resolves with any answer. Rejects if none came; the request may have taken effect. */
  request(method: string, path: string, options?: { body?: object; contentType?: string }): Promise<ApiResponse>
  /**
   * The lines of a watch; the iteration ends when the server ends the stream and rejects when the connection breaks.
   */
  watch(path: string, signal: AbortSignal): Promise<{ readonly status: number; readonly lines: AsyncIterable<Json> }>
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** Timeout of an answer, milliseconds: a server that is being killed may never give it. */
const responseMs = 20_000

/** Paths are relative to the kubeconfig's `server:`, or to `base` on the same server. */
export function openClient(kubeconfig: string, base?: string): Client {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user]
  if (cluster === undefined || user === undefined) throw new Error(`"${kubeconfig}" has no cluster or no user`)
  const decode = (text: string): Buffer => Buffer.from(text, 'base64')
  const server = new URL(cluster.server)
  const prefix = base ?? server.pathname.replace(/\/$/, '')
  const agent = new Agent({
    keepAlive: true,
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  })
  const open = (method: string, path: string, { body, contentType = 'application/json', signal }: Sent) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const outgoing = httpsRequest(
        {
          host: server.hostname,
          port: server.port,
          method,
          path: prefix + path,
          agent,
          headers: text === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(text) },
          ...(signal === undefined ? {} : { signal }),
        },
        resolve,
      )
      outgoing.on('error', reject)
      outgoing.end(text)
    })
  return {
    async request(method, path, options = {}) {
      const response = await open(method, path, { ...options, signal: AbortSignal.timeout(responseMs) })
      const chunks: Buffer[] = []
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      return { status: response.statusCode ?? 0, body: parseObject(text) }
    },
    async watch(path, signal) {
      const response = await open('GET', path, { signal })
      return { status: response.statusCode ?? 0, lines: linesOf(response) }
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}

interface Sent {
  readonly body?: object
  readonly contentType?: string
  readonly signal?: AbortSignal
}

function parseObject(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return { message: text.slice(0, 500) }
  }
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<Json> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') yield JSON.parse(part) as Json
  }
}
