// A raw HTTPS client for one server: sends exactly the row's bytes and returns the answer's bytes.
import { readFileSync } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Agent, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { parse } from 'yaml'

/** Timeout of every request, milliseconds. */
const responseMs = 20_000

export interface ApiResponse {
  readonly status: number
  /** Names in lower case; values of repeated headers are separate. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly body: Buffer
}

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Uint8Array | undefined
}

export interface OpenWatch {
  readonly answer: ApiResponse
  /** The next event as text; undefined when the server ended the stream. */
  next(): Promise<string | undefined>
  close(): void
}

export interface Upgraded {
  readonly answer: ApiResponse
  /** Undefined if the server did not switch protocols. Bytes already received are read first. */
  readonly socket: Duplex | undefined
}

export interface Server extends Disposable {
  /** Requests a protocol upgrade, with the row's headers, on a connection of its own. */
  upgrade(sent: Sent): Promise<Upgraded>
  send(sent: Sent): Promise<ApiResponse>
  /** Resolves when the headers have arrived. An answer that is not a watch includes its body. */
  watch(sent: Sent): Promise<OpenWatch>
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** A server from a kubeconfig; paths of rows are appended to the path of its URL. */
export function openServer(kubeconfig: string): Server {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const [first, user] = [clusters[0]?.cluster, users[0]?.user]
  if (first === undefined || user === undefined) throw new Error(`"${kubeconfig}" has no cluster or no user`)
  const decode = (text: string): Buffer => Buffer.from(text, 'base64')
  const identity = {
    ca: decode(first['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  }
  const agent = new Agent({ keepAlive: true, ...identity })
  const { hostname, port, pathname } = new URL(first.server)
  const base = pathname.replace(/\/$/, '')
  const open = ({ method, path, headers, body }: Sent, signal?: AbortSignal): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const options = { host: hostname, port, method, path: `${base}${path}`, agent, ...(signal ? { signal } : {}) }
      const length = body === undefined ? {} : { 'Content-Length': String(body.length) }
      const outgoing = request({ ...options, headers: { ...length, ...headers } as OutgoingHttpHeaders }, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  return {
    async send(sent) {
      try {
        const response = await open(sent, AbortSignal.timeout(responseMs))
        return responseOf(response, await wholeBody(response))
      } catch (error) {
        const { code, name } = error as NodeJS.ErrnoException
        if (code !== 'ECONNRESET' && name !== 'TimeoutError' && name !== 'AbortError') throw error
        return {
          status: 0,
          headers: new Map(),
          body: Buffer.from(code === 'ECONNRESET' ? 'the connection was broken off' : 'no answer'),
        }
      }
    },
    async watch(sent) {
      const ending = new AbortController()
      const response = await open(sent, ending.signal)
      if (response.statusCode !== 200)
        return {
          answer: responseOf(response, await wholeBody(response)),
          next: () => Promise.resolve(undefined),
          close: () => undefined,
        }
      const lines = linesOf(response)
      return {
        answer: responseOf(response, Buffer.alloc(0)),
        next: async () => (await lines.next()).value,
        close: () => ending.abort(),
      }
    },
    upgrade: ({ method, path, headers }) =>
      new Promise((resolve, reject) => {
        const options = { host: hostname, port, method, path: `${base}${path}`, agent: false, ...identity }
        const outgoing = request({ ...options, headers: headers as OutgoingHttpHeaders })
        outgoing.on('error', reject)
        outgoing.on('upgrade', (response, socket, head) => {
          if (head.length > 0) socket.unshift(head)
          resolve({ answer: responseOf(response, Buffer.alloc(0)), socket })
        })
        outgoing.on('response', (response) => {
          wholeBody(response).then((body) => resolve({ answer: responseOf(response, body), socket: undefined }), reject)
        })
        outgoing.end()
      }),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

async function wholeBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function responseOf(response: IncomingMessage, body: Buffer): ApiResponse {
  const headers = new Map<string, string[]>()
  const { rawHeaders } = response
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), rawHeaders[i + 1] ?? ''])
  }
  return { status: response.statusCode ?? 0, headers, body }
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string, undefined> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') yield part
  }
  return undefined
}
