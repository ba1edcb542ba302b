// A server of admission and conversion webhooks on this machine. What it answers follows from the path, so that any
// number of API servers can ask the same one.
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CertificateAuthority } from './certificates.ts'
import { conversionResponse } from './conversion-answers.ts'
import { closeWithConnections } from './close-with-connections.ts'

type Json = Record<string, unknown>

export interface AskedWebhook {
  readonly path: string
  /** With the question mark; empty if there is none. */
  readonly query: string
  readonly uid: string
  readonly traceparent?: string | undefined
}

export interface WebhookServer extends AsyncDisposable {
  readonly port: number
  /** clientConfig of the webhook at this path. */
  at(path: string): { url: string; caBundle: string }
  /** The paths that were asked, with the uid of the review. */
  readonly asked: readonly AskedWebhook[]
}

/** Starts it on a free port of 127.0.0.1; its certificate is also for `hook.shop.svc`. */
export async function startWebhookServer(): Promise<WebhookServer> {
  const authority = await CertificateAuthority.create('authority of webhooks')
  const { certificate: cert, key } = await authority.issue({
    commonName: 'webhooks',
    hosts: ['127.0.0.1', 'hook.shop.svc'],
  })
  const asked: AskedWebhook[] = []
  const server = createServer({ cert, key }, (request, response) => {
    void answer(request, response, asked)
  })
  const close = closeWithConnections(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  return {
    port,
    asked,
    at: (path) => ({ url: `https://127.0.0.1:${port}${path}`, caBundle }),
    [Symbol.asyncDispose]: close,
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, asked: AskedWebhook[]): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const review = JSON.parse(Buffer.concat(chunks).toString()) as { apiVersion: string; kind: string; request: Json }
  const { pathname: path, search: query } = new URL(request.url ?? '/', 'https://x')
  const uid = String(review.request['uid'])
  asked.push({ path, query, uid, traceparent: request.headers['traceparent']?.toString() })
  const [, behaviour = '', argument = ''] = path.split('/')
  const tell = (answered: Json, more: Json = {}): void => {
    const { apiVersion, kind } = review
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ apiVersion, kind, response: { uid, ...answered }, ...more }))
  }
  const base64 = (text: string): string => Buffer.from(text, 'base64url').toString()
  switch (behaviour) {
    case 'convert':
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(conversionResponse(review as never, path.split('/').slice(2))))
      return
    case 'allow':
      tell({ allowed: true })
      return
    case 'answer':
      tell(JSON.parse(base64(argument)) as Json)
      return
    case 'whole':
      tell({ allowed: true }, JSON.parse(base64(argument)) as Json)
      return
    case 'echo':
      tell({ allowed: false, status: { message: JSON.stringify(comparable(review)) } })
      return
    case 'patch': {
      const patch = Buffer.from(argument, 'base64url').toString('base64')
      tell({ allowed: true, patchType: 'JSONPatch', patch })
      return
    }
    // Denies only what is named like this: shows that the configuration is in force.
    case 'ready':
      tell({ allowed: review.request['name'] !== argument })
      return
    case 'status':
      return void response.writeHead(Number(argument)).end('what is written here is not repeated')
    case 'redirect':
      return void response.writeHead(307, { location: '/allow' }).end()
    case 'text':
      return void response.end(base64(argument))
    case 'hang':
      return
    default:
      response.writeHead(404).end()
  }
}

/** A review without what differs between two servers, with sorted members. */
function comparable(review: { apiVersion: string; request: Json }): unknown {
  const { uid: _uid, userInfo: _user, object, oldObject, ...rest } = review.request
  return sorted({ apiVersion: review.apiVersion, ...rest, object: bare(object), oldObject: bare(oldObject) })
}

function bare(object: unknown): unknown {
  if (typeof object !== 'object' || object === null) return object
  const { metadata, ...rest } = object as { metadata?: Json }
  if (metadata === undefined) return rest
  const {
    uid,
    creationTimestamp,
    managedFields: _fields,
    resourceVersion,
    ...others
  } = metadata as Record<string, unknown>
  const has = { uid: uid !== undefined, created: creationTimestamp != null, version: resourceVersion !== undefined }
  return { ...rest, metadata: others, has }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}
