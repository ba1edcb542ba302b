// Connections to members and their credentials, for the operator with its syncers and for the API server. The Secret to
// which a MemberCluster refers holds a kubeconfig with a short-lived token, which is requested anew before half of its
// life is over.
import type { Duplex } from 'node:stream'
import { decodeJwt } from 'jose'
import { parseDocument } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import {
  boundedTransport,
  createClient,
  type DeepReadonly,
  httpTransport,
  type KubeClient,
  loadKubeconfig,
  passedOn,
  responseBoundOf,
  type Transport,
  type TransportRequest,
  untrustedServer,
} from '#client/index.ts'
import { type MemberCluster, memberParts, systemNamespace } from '#crds/index.ts'
import { actingCapability } from '#network/tunnel/index.ts'

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
  /** The same, for responses that are passed on as they arrive: only redirects and large errors are refused. */
  readonly passing: Transport
  readonly client: KubeClient
  /** The way the connection was made: another way needs another connection. */
  readonly way: MemberWay
}

/** How a member is reached: with a kubeconfig (push), or through the tunnel of its agent (pull). */
export type MemberWay =
  { readonly kind: 'kubeconfig'; readonly text: string } | { readonly kind: 'agent'; readonly member: TunnelledMember }

export interface TunnelledMember {
  readonly name: string
  /** uid of the MemberCluster. */
  readonly uid: string
}

/** Opens connections to members in pull mode. */
export interface MemberDialer {
  /**
   * A connection to the member's API: plain HTTP, which the agent forwards with its own credentials. Rejects with
   * ServiceUnavailable if no agent of the member is connected, or none with the capability that is needed.
   */
  dial(member: TunnelledMember, session: 'control' | 'bulk', needs?: string): Promise<Duplex>
}

/** True if a connection that was made in one way serves for the other. */
export function isSameWay(one: MemberWay | undefined, other: MemberWay): boolean {
  if (one?.kind === 'agent' && other.kind === 'agent') return one.member.uid === other.member.uid
  return one?.kind === 'kubeconfig' && other.kind === 'kubeconfig' && one.text === other.text
}

export interface ConnectOptions {
  readonly responseTimeoutMs: number
  /** Absent: members in pull mode are not reached. */
  readonly dialer?: MemberDialer
}

/**
 * Prepares a connection; nothing is sent yet. The kubeconfig is not trusted: it may contain a server, a CA and a token
 * or certificate, but no plugins, files, proxies or disabled TLS verification. Rejects with BadRequest for any of
 * these. The member is not trusted either: each response is bounded in size and time, and no redirect is followed.
 */
export async function connectToMember(way: MemberWay, options: ConnectOptions): Promise<MemberConnection> {
  const plain = await transportOf(way, options)
  const transport = boundedTransport(plain)
  return {
    transport,
    passing: boundedTransport(plain, { boundOf: passedOn }),
    client: createClient(transport, untrustedServer),
    way,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

async function transportOf(way: MemberWay, { responseTimeoutMs, dialer }: ConnectOptions): Promise<Transport> {
  if (way.kind === 'kubeconfig') return httpTransport(await loadKubeconfig({ text: way.text }), { responseTimeoutMs })
  const { member } = way
  if (dialer === undefined) throw serviceUnavailable('this process reaches no members in pull mode')
  // Only errors show this address.
  const server = `http://${member.name}`
  const through = (session: 'control' | 'bulk', needs?: string): Transport =>
    httpTransport({ server, dial: () => dialer.dial(member, session, needs) }, { responseTimeoutMs })
  const [control, bulk, acting] = [through('control'), through('bulk'), through('bulk', actingCapability)]
  // Logs, exec and the like, and all that others do in the member: nothing of that may delay a syncer.
  const bulkFor = ({ path }: TransportRequest): Transport => (path.startsWith(actingPrefix) ? acting : bulk)
  const isBulk = (request: TransportRequest): boolean =>
    request.path.startsWith(actingPrefix) || responseBoundOf(request).kind === 'stream'
  return {
    request: (request) => (isBulk(request) ? bulkFor(request) : control).request(request),
    upgrade: (request) => bulkFor(request).upgrade(request),
    async [Symbol.asyncDispose]() {
      await Promise.all([control, bulk, acting].map((one) => one[Symbol.asyncDispose]()))
    },
  }
}

/** The prefix of the path of a request that an agent makes as a ServiceAccount of the member, `/as/NAMESPACE/NAME`. */
export const actingPrefix = '/as/'

/**
 * What makes a request one of this ServiceAccount of the member. kcp needs the right to impersonate it there, and can
 * act as no other.
 */
export function actingAs(
  way: MemberWay,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): { readonly pathPrefix: string; readonly headers: Readonly<Record<string, string>> } {
  if (way.kind === 'agent') return { pathPrefix: `${actingPrefix}${namespace}/${name}`, headers: {} }
  return { pathPrefix: '', headers: { 'impersonate-user': `system:serviceaccount:${namespace}:${name}` } }
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

export type FoundWay =
  | MemberWay
  /** The MemberCluster says nothing about its connection. */
  | { readonly kind: 'none' }
  /** There is no such Secret, or it does not have the key. `secret` is `NAMESPACE/NAME`. */
  | { readonly kind: 'noSecret'; readonly secret: string; readonly key: string }

/**
 * How the member is reached. Reads the kubeconfig of a member in push mode each time. `clusters` is the API with the
 * MemberClusters and their Secrets. Rejects with the StatusError of that API.
 */
export async function memberWay(
  { metadata, spec }: DeepReadonly<MemberCluster>,
  clusters: Pick<KubeClient, 'tryGet'>,
  signal: AbortSignal,
): Promise<FoundWay> {
  const { kubeconfigSecretRef: ref, agent } = spec?.connection ?? {}
  if (agent !== undefined) return { kind: 'agent', member: { name: metadata.name, uid: metadata.uid ?? '' } }
  if (ref === undefined) return { kind: 'none' }
  const { namespace, name, key = 'kubeconfig' } = ref
  const secret = await clusters.tryGet<KubeObject>(secrets, { namespace, name }, { signal })
  const data = (secret?.['data'] as Record<string, string> | undefined)?.[key]
  if (data === undefined) return { kind: 'noSecret', secret: `${namespace}/${name}`, key }
  return { kind: 'kubeconfig', text: Buffer.from(data, 'base64').toString() }
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
