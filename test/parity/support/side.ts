// A client for one server of a comparison, with the credentials of its admin.
import { readFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { parse } from 'yaml'

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly body: Buffer
}

export interface RequestOptions {
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** Without the admin's certificate. */
  readonly anonymous?: boolean
}

/** One server, with its admin's credentials. */
export interface Side {
  readonly kubeconfig: string
  /** Resolves with any answer. `path` is as on a server of one cluster: `/api/v1/...`. */
  request(method: string, path: string, options?: RequestOptions): Promise<RawResponse>
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** A client for the server and user of a kubeconfig. */
export function openSide(kubeconfig: string): Side & { close(): void } {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user]
  if (cluster === undefined || user === undefined) throw new Error(`"${kubeconfig}" has no cluster or no user`)
  const decode = (text: string): Buffer => Buffer.from(text, 'base64')
  const ca = decode(cluster['certificate-authority-data'])
  const { hostname, port, pathname } = new URL(cluster.server)
  const identity = { cert: decode(user['client-certificate-data']), key: decode(user['client-key-data']) }
  const admin = new Agent({ keepAlive: true, ca, ...identity })
  const anybody = new Agent({ keepAlive: true, ca })
  return {
    kubeconfig,
    request: (method, path, { body, headers = {}, anonymous = false } = {}) =>
      new Promise((resolve, reject) => {
        const bytes = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
        const outgoing = httpsRequest(
          {
            ...{ hostname, port, method, path: pathname.replace(/\/$/, '') + path },
            agent: anonymous ? anybody : admin,
            headers: { ...(bytes === undefined ? {} : bodyHeaders(bytes)), ...headers },
          },
          (response) => {
            const chunks: Buffer[] = []
            response.on('data', (chunk: Buffer) => chunks.push(chunk))
            response.on('error', reject)
            response.on('end', () => {
              const received = Buffer.concat(chunks)
              const { statusCode: status = 0, headers: answered } = response
              resolve({ status, headers: answered, text: received.toString(), body: received })
            })
          },
        )
        outgoing.on('error', reject)
        outgoing.end(bytes)
      }),
    close() {
      admin.destroy()
      anybody.destroy()
    },
  }
}

/** Sets Content-Length: Node omits it for a DELETE, and without it the body is ignored. */
function bodyHeaders(body: string): Record<string, string> {
  return { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
}
