// The HTTP client of the measurements: HTTP/1.1 over kept connections, the same for every server, in this process.
import { Pool } from 'undici'
import { connectionOf } from './connection.ts'

/** A server with open connections to it. */
export interface Endpoint extends AsyncDisposable {
  /** The path prefix before `/api`: that of a logical cluster, or empty. */
  readonly base: string
  /** `type` is that of the body: JSON if absent. */
  request(method: string, path: string, body?: string, type?: string): Promise<{ status: number; bytes: number }>
  json(method: string, path: string, body?: string): Promise<unknown>
  text(method: string, path: string): Promise<string>
}

/** Opens connections with the certificate of a kubeconfig. `base` replaces the path in it, `headers` are sent with each request. */
export function openEndpoint(
  kubeconfig: string,
  {
    connections,
    base: givenBase,
    headers = {},
  }: { connections: number; base?: string; headers?: Record<string, string> },
): Endpoint {
  const { host, port, base: ownBase, ca, cert, key } = connectionOf(kubeconfig)
  const pool = new Pool(`https://${host}:${port}`, { connections, allowH2: false, connect: { ca, cert, key } })
  const base = givenBase ?? ownBase
  const send = (method: string, path: string, body?: string, type = 'application/json') =>
    pool.request({
      method,
      path: base + path,
      headers: body === undefined ? headers : { ...headers, 'content-type': type },
      ...(body === undefined ? {} : { body }),
    })
  const text = async (method: string, path: string, body?: string): Promise<string> => {
    const { statusCode, body: answer } = await send(method, path, body)
    const all = await answer.text()
    if (statusCode >= 300) throw new Error(`${method} ${path}: ${statusCode} ${all.slice(0, 300)}`)
    return all
  }
  return {
    base,
    async request(method, path, body, type) {
      const { statusCode, body: answer } = await send(method, path, body, type)
      let bytes = 0
      for await (const chunk of answer as AsyncIterable<Buffer>) bytes += chunk.length
      return { status: statusCode, bytes }
    },
    async json(method, path, body) {
      return JSON.parse(await text(method, path, body)) as unknown
    },
    text,
    [Symbol.asyncDispose]: () => pool.destroy(),
  }
}

/** Method, path, body, and the type of the body: JSON if absent. */
export type LoadRequest = readonly [string, string, string?, string?]

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
}

/**
 * Sends requests from `clients` concurrent loops for the given time. Rejects at the first answer that is not a success.
 */
export async function load(
  endpoint: Endpoint,
  { clients, seconds, next }: { clients: number; seconds: number; next: () => LoadRequest },
): Promise<LoadResult> {
  const began = performance.now()
  const end = began + seconds * 1000
  let requests = 0
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const [method, path, body, type] = next()
      const { status, bytes } = await endpoint.request(method, path, body, type)
      if (status >= 300 || bytes === 0) throw new Error(`${method} ${path}: answered ${status} with ${bytes} bytes`)
      requests++
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return { requests, seconds: (performance.now() - began) / 1000 }
}
