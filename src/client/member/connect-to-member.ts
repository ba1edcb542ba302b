// Connections to members and their credentials, for the operator with its syncers and for the API server. The Secret to
// which a MemberCluster refers holds a kubeconfig with a short-lived token, which is requested anew before half of its
// life is over.
import { decodeJwt } from 'jose'
import { parseDocument } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  boundedTransport,
  createClient,
  type DeepReadonly,
  httpTransport,
  type KubeClient,
  loadKubeconfig,
  type Transport,
  untrustedServer,
} from '#client/index.ts'
import { type MemberCluster, memberParts, systemNamespace } from '#crds/index.ts'

/** How long a member may take, in milliseconds. A member that takes longer counts as unreachable. */
export const memberTimeouts = {
  /** For the health check of a MemberCluster, all its requests together. */
  probeMs: 10_000,
  /** For the first byte of a response to the operator or a syncer. The first byte of a watch comes at once. */
  responseMs: 30_000,
  /** For the first byte of a response to a tenant: the logs of a silent container begin only with its first line. */
  streamResponseMs: 90_000,
} as const

export interface MemberConnection extends AsyncDisposable {
  readonly transport: Transport
  readonly client: KubeClient
  /** The text the connection was made from: another text needs another connection. */
  readonly kubeconfig: string
}

/**
 * Prepares a connection; nothing is sent yet. The kubeconfig is not trusted: it may contain a server, a CA and a token
 * or certificate, but no plugins, files, proxies or disabled TLS verification. Rejects with BadRequest for any of
 * these. The member is not trusted either: each response is bounded in size and time, and no redirect is followed.
 */
export async function connectToMember(
  kubeconfig: string,
  { responseTimeoutMs }: { readonly responseTimeoutMs: number },
): Promise<MemberConnection> {
  const transport = boundedTransport(httpTransport(await loadKubeconfig({ text: kubeconfig }), { responseTimeoutMs }))
  return {
    transport,
    client: createClient(transport, untrustedServer),
    kubeconfig,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

export type MemberKubeconfig =
  | { readonly kind: 'found'; readonly text: string }
  /** The MemberCluster refers to no Secret: an agent is expected to connect. */
  | { readonly kind: 'noReference' }
  /** There is no such Secret, or it does not have the key. `secret` is `NAMESPACE/NAME`. */
  | { readonly kind: 'noSecret'; readonly secret: string; readonly key: string }

/**
 * Reads the kubeconfig of a member. `clusters` is the API with the MemberClusters and their Secrets. Rejects with the
 * StatusError of that API.
 */
export async function memberKubeconfig(
  member: DeepReadonly<MemberCluster>,
  clusters: Pick<KubeClient, 'tryGet'>,
  signal: AbortSignal,
): Promise<MemberKubeconfig> {
  const ref = member.spec?.connection?.kubeconfigSecretRef
  if (ref === undefined) return { kind: 'noReference' }
  const { namespace, name, key = 'kubeconfig' } = ref
  const secret = await clusters.tryGet<KubeObject>(secrets, { namespace, name }, { signal })
  const data = (secret?.['data'] as Record<string, string> | undefined)?.[key]
  if (data === undefined) return { kind: 'noSecret', secret: `${namespace}/${name}`, key }
  return { kind: 'found', text: Buffer.from(data, 'base64').toString() }
}

const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
const tokenPath = ['users', 0, 'user', 'token']
const expirationSeconds = 24 * 3600

/**
 * Requests a token of the syncer's ServiceAccount for the member's own API, valid for a day. Rejects with StatusError.
 */
export async function requestMemberToken(member: Pick<KubeClient, 'create'>, signal: AbortSignal): Promise<string> {
  const request: KubeObject = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: memberParts.syncerAccount, namespace: systemNamespace },
    spec: { expirationSeconds },
  }
  const response = await member.create<KubeObject>(serviceAccounts, request, { subresource: 'token', signal })
  const { token } = (response['status'] ?? {}) as { token?: string }
  if (token === undefined) throw new Error('the member answered a TokenRequest without a token')
  return token
}

/**
 * True if the kubeconfig has a token of the syncer's ServiceAccount and half of the token's lifetime is over. False for
 * tokens that do not expire, which earlier versions requested, and for credentials that others manage.
 */
export function isMemberTokenDue(kubeconfig: string, nowMs: number): boolean {
  try {
    const token: unknown = parseDocument(kubeconfig).getIn(tokenPath)
    if (typeof token !== 'string') return false
    const { sub, iat, exp } = decodeJwt(token)
    if (sub !== `system:serviceaccount:${systemNamespace}:${memberParts.syncerAccount}`) return false
    return iat !== undefined && exp !== undefined && nowMs / 1000 >= (iat + exp) / 2
  } catch {
    return false
  }
}

/** The kubeconfig with another token. */
export function withMemberToken(kubeconfig: string, token: string): string {
  const document = parseDocument(kubeconfig)
  document.setIn(tokenPath, token)
  return document.toString()
}
