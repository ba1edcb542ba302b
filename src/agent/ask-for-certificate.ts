// Asks the installation for a certificate: `POST /services/agent/MEMBER/certificate`.
import { request, type Agent } from 'node:https'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { childSignal } from '#async/index.ts'
import type { AgentClaims } from '#crds/index.ts'
import { connectionsTo, type ClientCertificate } from './dial.ts'
import type { JoinSettings } from './join-settings.ts'

export interface CertificateQuestion {
  readonly settings: JoinSettings
  /** PKCS #10, PEM. */
  readonly signingRequest: string
  readonly claims: AgentClaims
  /** The present certificate, to renew it; absent: the token counts. */
  readonly client?: ClientCertificate
}

export type CertificateAnswer =
  | { readonly kind: 'issued'; readonly certificate: string }
  | { readonly kind: 'waiting'; readonly message: string }
  /** `isProof`: the installation does not accept the token or the certificate; `isForbidden`: it does, but not the key. */
  | {
      readonly kind: 'refused'
      readonly isProof: boolean
      readonly isForbidden: boolean
      readonly message: string
      readonly afterMs: number
    }

const timeoutMs = 30_000
const maxAnswerBytes = 64 * 1024

/** Rejects with the error of the connection if the installation cannot be reached. */
export async function askForCertificate(
  question: CertificateQuestion,
  signal: AbortSignal,
): Promise<CertificateAnswer> {
  const { settings, client } = question
  const agent = connectionsTo(settings.installation, client)
  using limited = childSignal(signal)
  const late = new Error(`the installation has not answered within ${timeoutMs / 1000} s`)
  const timer = setTimeout(() => limited.abort(late), timeoutMs)
  try {
    const { status, retryAfter, text } = await post(question, { agent, signal: limited.signal })
    const value = tryObject(text)
    const message = typeof value?.['message'] === 'string' ? value['message'] : text.slice(0, 200)
    if (status === 201 && typeof value?.['certificate'] === 'string')
      return { kind: 'issued', certificate: value['certificate'] }
    if (status === 202) return { kind: 'waiting', message }
    const isProof = status === 401 || status === 403
    const refusal = { isProof, isForbidden: status === 403, message: `${status}: ${message}` }
    return { kind: 'refused', ...refusal, afterMs: retryAfter * 1000 }
  } finally {
    clearTimeout(timer)
    agent.destroy()
  }
}

interface PlainResponse {
  readonly status: number
  /** Seconds. */
  readonly retryAfter: number
  readonly text: string
}

async function post(
  { settings, signingRequest, claims, client }: CertificateQuestion,
  { agent, signal }: { readonly agent: Agent; readonly signal: AbortSignal },
): Promise<PlainResponse> {
  const body = JSON.stringify({ request: signingRequest, claims })
  const { promise, resolve, reject } = Promise.withResolvers<PlainResponse>()
  const url = `${settings.installation.url}/services/agent/${settings.member}/certificate`
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(client === undefined && { authorization: `Bearer ${settings.token}` }),
  }
  const asked = request(url, { agent, method: 'POST', headers, signal }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      text += part
      if (text.length > maxAnswerBytes) response.destroy(new Error('the answer of the installation is too long'))
    })
    response.once('error', reject)
    response.once('end', () =>
      resolve({
        status: response.statusCode ?? 0,
        retryAfter: Number(response.headers['retry-after'] ?? 0) || 0,
        text,
      }),
    )
  })
  // The error of an abort hides its reason.
  asked.once('error', (error) => reject(signal.aborted ? (signal.reason as Error) : error))
  asked.end(body)
  return await promise
}

function tryObject(text: string): Readonly<Record<string, JsonValue>> | undefined {
  try {
    const value = parseJsonText(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
