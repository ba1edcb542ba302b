// The one way to connect to a member, for the operator with its syncers and for the API server.
import {
  boundedTransport,
  createClient,
  httpTransport,
  loadKubeconfig,
  untrustedServer,
  type KubeClient,
  type Transport,
} from '#client/index.ts'

/** How long a member may take, in milliseconds. A member that takes longer counts as unreachable. */
export const memberTimeouts = {
  /** For the health check of a MemberCluster, all its requests together. */
  probeMs: 10_000,
  /** For the first byte of an answer to the operator or a syncer. The first byte of a watch comes at once. */
  answerMs: 30_000,
  /** For the first byte of an answer to a tenant: logs of a container that is silent begin with its first line. */
  streamAnswerMs: 90_000,
} as const

export interface MemberConnection extends AsyncDisposable {
  readonly transport: Transport
  readonly client: KubeClient
  /** The text the connection was made from: another text needs another connection. */
  readonly kubeconfig: string
}

/**
 * Prepares a connection; nothing is sent yet. The kubeconfig is not trusted: it may contain a server, a CA and a token or
 * certificate, but no plugins, files, proxies or disabled TLS verification. Rejects with BadRequest for any of these. Nor is the
 * member: each of its answers is bounded in size and time, and no redirect is followed.
 */
export async function connectToMember(
  kubeconfig: string,
  { answerTimeoutMs }: { readonly answerTimeoutMs: number },
): Promise<MemberConnection> {
  const transport = boundedTransport(httpTransport(await loadKubeconfig({ text: kubeconfig }), { answerTimeoutMs }))
  return {
    transport,
    client: createClient(transport, untrustedServer),
    kubeconfig,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}
