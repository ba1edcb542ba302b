// A real HTTPS server whose answers harm whoever asks, for the remote sides of this product: members, webhooks,
// aggregated servers.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { CertificateAuthority } from './certificates.ts'
import { closeWithConnections } from './close-with-connections.ts'

/** `huge`: 64 MiB of JSON. `hints`: `103 Early Hints` without an end. */
export const harms = ['huge', 'endless', 'slow', 'redirect', 'wrong type', 'hints'] as const
export type Harm = (typeof harms)[number]

export interface HostileServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** PEM of the authority of its certificate. */
  readonly ca: string
  /** What every request gets from now on. */
  answerWith(handle: Harm | ((request: IncomingMessage, response: ServerResponse, body: Buffer) => void)): void
  /** Paths of the requests so far. */
  readonly asked: readonly string[]
  /** Bytes of answers that clients have taken, or that are on their way to them, since the last `answerWith`. */
  sent(): number
}

/** Where a redirect leads. */
export const redirected = '/redirected'
const mib = 1024 * 1024
const chunk = Buffer.from('[],'.repeat(16 * 1024))

/** Starts it on a free port of this address. */
export async function startHostileServer(host = '127.0.0.1'): Promise<HostileServer> {
  const authority = await CertificateAuthority.create('authority of a hostile server')
  const { certificate: cert, key } = await authority.issue({ commonName: 'hostile', hosts: [host] })
  const asked: string[] = []
  let handle: Parameters<HostileServer['answerWith']>[0] = 'redirect'
  let bytes = 0
  const server = createServer({ cert, key }, (request, response) => {
    asked.push(request.url ?? '')
    response.on('error', () => undefined)
    const before = response.socket?.bytesWritten ?? 0
    response.once('close', () => (bytes += (response.socket?.bytesWritten ?? request.socket.bytesWritten) - before))
    void bodyOf(request).then((body) => {
      if (typeof handle === 'string') void harm(handle, response)
      else handle(request, response, body)
    })
  })
  const close = closeWithConnections(server)
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...{ port, asked, url: `https://${host}:${port}`, ca: authority.certificate },
    answerWith(next) {
      handle = next
      bytes = 0
    },
    sent: () => bytes,
    [Symbol.asyncDispose]: close,
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const one of request as AsyncIterable<Buffer>) chunks.push(one)
  } catch {
    // The client is gone.
  }
  return Buffer.concat(chunks)
}

async function harm(kind: Harm, response: ServerResponse): Promise<void> {
  const json = { 'content-type': 'application/json' }
  switch (kind) {
    case 'huge':
    case 'endless':
      response.writeHead(200, json)
      response.write('{"items":[')
      for (let sent = 0; isOpen(response) && (kind === 'endless' || sent < 64 * mib); sent += chunk.length)
        await written(response, chunk)
      response.end('[]]}')
      return
    case 'slow':
      response.writeHead(200, json)
      while (isOpen(response)) {
        await written(response, ' ')
        await delay(20)
      }
      return
    case 'redirect':
      response.writeHead(307, { location: redirected }).end()
      return
    case 'wrong type':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>')
      return
    case 'hints': {
      const { socket } = response
      const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'.repeat(500)
      while (socket !== null && !socket.destroyed) if (!socket.write(hint)) await drained(socket)
    }
  }
}

/** Resolves when more may be written, or when the other side is gone. */
async function drained(stream: Writable): Promise<void> {
  const over = new AbortController()
  const options = { signal: over.signal }
  const [drain, closed] = [once(stream, 'drain', options), once(stream, 'close', options)]
  for (const one of [drain, closed]) one.catch(() => undefined)
  await Promise.race([drain, closed]).catch(() => undefined)
  over.abort()
}

const isOpen = ({ destroyed, socket }: ServerResponse): boolean => !destroyed && socket?.destroyed !== true

async function written(response: ServerResponse, bytes: Buffer | string): Promise<void> {
  if (!response.write(bytes)) await drained(response)
}
