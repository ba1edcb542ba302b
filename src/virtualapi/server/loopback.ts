// A Transport to the server within the process: our own controllers use the same stages and endpoints as clients,
// without sockets, TLS and credentials.
import { Buffer } from 'node:buffer'
import type { Transport, TransportRequest, TransportResponse } from '#client/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { statusResponse } from '#virtualapi/codec/responses.ts'
import { pathNotFound } from '#apimachinery/status/index.ts'
import type { SentChunks } from '#virtualapi/request/exchange.ts'
import { handle, type Handled } from './handle.ts'
import type { ServerDependencies } from './dependencies.ts'
import { pushedChunks } from './wire/push-chunks.ts'

/** The user of our own controllers. */
export const loopbackUser: UserInfo = {
  name: 'system:kcp',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
  realm: { kind: 'installation' },
}

/** Sends requests as `user`. Default: the installation itself. */
export function loopbackTransport(dependencies: ServerDependencies, user = loopbackUser): Transport {
  return {
    async request(request) {
      return toResponse(await handle({ ...incoming(request), loopbackUser: user }, dependencies), request.signal)
    },
    async upgrade({ signal }) {
      const answer = statusResponse(pathNotFound().status)
      return { refused: toResponse({ answer, finish: () => undefined }, signal) }
    },
    async [Symbol.asyncDispose]() {
      // There is nothing to close: the code that opened the server closes it.
    },
  }
}

function incoming({
  method,
  path,
  headers = {},
  body,
  signal,
}: TransportRequest): Omit<Parameters<typeof handle>[0], 'loopbackUser'> {
  const bytes = body === undefined ? new Uint8Array() : typeof body === 'string' ? Buffer.from(body) : body
  return {
    method,
    url: path,
    rawHeaders: Object.entries({ 'user-agent': 'kcp', ...headers, ...lengthOf(bytes) }).flat(),
    peerCertificate: undefined,
    body: () => Promise.resolve(bytes),
    signal,
  }
}

/** The header content-length: the server needs it to offload requests with large bodies. */
function lengthOf({ length }: Uint8Array): Record<string, string> {
  return length === 0 ? {} : { 'content-length': String(length) }
}

function toResponse({ answer, finish }: Handled, signal: AbortSignal): TransportResponse {
  if (answer.kind === 'forward') throw new Error('a request from within the process was to be passed on')
  const { status, headers } = answer
  if (answer.kind === 'push') return { status, headers, body: finishing(pushedChunks(answer, signal), finish) }
  if (answer.kind === 'chunks') return { status, headers, body: finishing(inTurn(answer), finish) }
  if (answer.kind === 'stream') return { status, headers, body: finishing(answer.chunks, finish) }
  finish()
  return { status, headers, body: single(answer.body) }
}

/** Reads a chunked answer. Chunks are not released for reuse: the reader may keep them. */
async function* inTurn({ chunks, turn }: SentChunks): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    await turn()
    yield chunk
  }
}

async function* finishing(chunks: AsyncIterable<Uint8Array>, finish: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } finally {
    finish()
  }
}

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes
}
