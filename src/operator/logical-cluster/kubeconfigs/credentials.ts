// Issues the credentials in a kubeconfig: a client certificate or a token of a ServiceAccount, both for one logical
// cluster.
import { X509Certificate } from 'node:crypto'
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import { internalError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient, KubeconfigCredentials } from '#client/index.ts'
import type { KubeconfigEntry } from '#crds/index.ts'
import type { CredentialIssuer } from '#operator/framework/operator-context.ts'

type Subject = DeepReadonly<NonNullable<KubeconfigEntry['subject']>>

export interface IssueContext {
  readonly issuer: CredentialIssuer
  /** The API of the logical cluster. */
  readonly virtual: KubeClient
  readonly id: ClusterId
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

export interface Issued {
  readonly credentials: KubeconfigCredentials
  /** When to renew the credentials, after two thirds of their validity; milliseconds since 1970. */
  readonly renewAfterMs: number
}

const certificateDays = 30
const tokenSeconds = 24 * 60 * 60
const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const

/** Credentials of the subject, by default an admin. Rejects with NotFound if the ServiceAccount does not exist. */
export async function issueCredentials(
  subject: Subject | undefined,
  context: IssueContext,
  signal: AbortSignal,
): Promise<Issued> {
  if (subject?.kind === 'ServiceAccount') return issueToken(subject, context, signal)
  const { certificate, key } = await context.issuer.issueClientCertificate({
    commonName: subject?.name ?? 'admin',
    organizations: subject === undefined ? ['system:masters'] : [],
    realm: context.id,
    days: certificateDays,
  })
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  const renewAfterMs = twoThirds(validFromDate.getTime(), validToDate.getTime())
  return { credentials: { cert: certificate, key }, renewAfterMs }
}

interface TokenRequest extends KubeObject {
  status?: { token?: string; expirationTimestamp?: string }
}

async function issueToken(
  { namespace = '', name }: Subject,
  { virtual, nowMs }: IssueContext,
  signal: AbortSignal,
): Promise<Issued> {
  const request: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { namespace, name },
    spec: { expirationSeconds: tokenSeconds },
  }
  const { status } = await virtual.create(serviceAccounts, request, { subresource: 'token', signal })
  if (status?.token === undefined) throw internalError(`the server returned no token for ServiceAccount "${name}"`)
  const untilMs = Date.parse(status.expirationTimestamp ?? '') || nowMs + tokenSeconds * 1000
  return { credentials: { token: status.token }, renewAfterMs: twoThirds(nowMs, untilMs) }
}

function twoThirds(from: number, to: number): number {
  return from + ((to - from) * 2) / 3
}
