// An agent of a member as an attacker plays it: its key, its requests, and any answer.
import { createHash } from 'node:crypto'
import { request, type RequestOptions } from 'node:https'
import { newAgentKey, signingRequest } from '#agent/agent-key.ts'

export interface Asked {
  readonly status: number
  readonly text: string
  readonly certificate: string | undefined
}

export interface Server {
  /** Default 127.0.0.1. */
  readonly host?: string
  readonly port: number
  readonly ca: string
}

interface Question {
  /** In the path. */
  readonly member: string
  readonly token?: string
  /** The client certificate. */
  readonly client?: { readonly certificate: string; readonly key: string }
  /** PKCS #10. Default: for `key` and `member`. */
  readonly csr?: string
  readonly key?: string
  readonly claims?: object
  /** Where the connection comes from. */
  readonly localAddress?: string
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The end of the body does not come. */
  readonly isSlow?: boolean
}

export { newAgentKey }

/** SHA-256 of a token, as the MemberCluster has it. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** Asks for a certificate, or for anything else where `path` is given. */
export async function ask({ host = '127.0.0.1', port, ca }: Server, question: Question): Promise<Asked> {
  const { member, token, client, key = newAgentKey(), claims = {}, localAddress = host } = question
  const { method = 'POST', path = `/services/agent/${member}/certificate` } = question
  const csr = question.csr ?? (await signingRequest(key, member))
  const body = question.body ?? JSON.stringify({ request: csr, claims })
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...question.headers,
  }
  const { promise, resolve, reject } = Promise.withResolvers<Asked>()
  const credentials = client === undefined ? {} : { cert: client.certificate, key: client.key }
  const options: RequestOptions = {
    host,
    port,
    path,
    method,
    ca,
    localAddress,
    headers,
    agent: false,
    ...credentials,
  }
  const asked = request(options, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => (text += part))
    response.once('end', () => {
      const { certificate } = (text.startsWith('{') ? JSON.parse(text) : {}) as { certificate?: string }
      resolve({ status: response.statusCode ?? 0, text, certificate })
    })
  })
  asked.once('error', reject)
  if (question.isSlow === true) asked.write(body)
  else asked.end(body)
  return await promise
}
