// Connections to the API servers that tenants run behind Services: the caBundle of the APIService verifies the API
// server, and a client certificate identifies this server to it.
import type { Duplex } from 'node:stream'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Egress, EgressResponse, EgressCall } from '#network/egress/index.ts'
import type { FrontProxyPair } from '#virtualapi/auth/authn/pki/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Resolved, ServiceResolver } from '#virtualapi/outbound/calls/service-resolver.ts'
import { identityHeaders } from './identity-headers.ts'
import type { RemoteApiService, RemoteServer } from './remote-api-service.ts'

interface Dependencies {
  readonly egress: Egress
  readonly resolveService: ServiceResolver
  readonly frontProxy: (cluster: ClusterId) => FrontProxyPair
}

/** The user of requests without a client, as in kube-aggregator. */
export const aggregator: Pick<UserInfo, 'name' | 'groups' | 'extra'> = {
  name: 'system:kube-aggregator',
  groups: ['system:masters'],
  extra: {},
}

const openingMs = 10_000
/** The most bytes of a document. A larger document is refused. */
const maxDocumentBytes = 4 * 1024 * 1024

export class AggregatedServers {
  readonly #dependencies: Dependencies

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** A ready endpoint of the server's Service. Rejects with EgressError. */
  resolve(cluster: ClusterId, { service }: RemoteServer, signal: AbortSignal): Promise<Resolved> {
    return this.#dependencies.resolveService(cluster, service, signal)
  }

  /** Opens a connection for one request. The signal ends the connection. Rejects with EgressError. */
  async connect(cluster: ClusterId, { remote }: RemoteApiService, signal: AbortSignal): Promise<Duplex> {
    const endpoint = await this.resolve(cluster, remote, signal)
    return await this.#dependencies.egress.connect({
      ...this.#target(cluster, remote),
      ...endpoint,
      timeoutMs: openingMs,
      signal,
    })
  }

  /** Fetches a document as the aggregator itself. Rejects with EgressError; resolves with any status. */
  async get(
    cluster: ClusterId,
    { remote }: RemoteApiService,
    path: string,
    options: {
      /** The endpoint to connect to. Default: any ready endpoint of the Service. */
      readonly endpoint?: Resolved
      readonly insecure?: boolean
      readonly accept?: string
      readonly timeoutMs: number
      /** Reads the response while its bytes are charged to the logical cluster. */
      readonly reading?: EgressCall['reading']
      readonly signal: AbortSignal
    },
  ): Promise<EgressResponse> {
    const { accept = 'application/json', timeoutMs, reading, signal, insecure = remote.insecure } = options
    const endpoint = options.endpoint ?? (await this.resolve(cluster, remote, signal))
    const target = this.#target(cluster, insecure ? { service: remote.service, caBundle: undefined, insecure } : remote)
    const headers = { accept, 'user-agent': 'kcp', ...single(identityHeaders(aggregator)) }
    const url = new URL(path, target.url)
    const read = reading === undefined ? {} : { reading }
    const bounds = { maxResponseBytes: maxDocumentBytes, timeoutMs, signal, ...read }
    return await this.#dependencies.egress.call({ ...target, ...endpoint, ...bounds, url, method: 'GET', headers })
  }

  #target(cluster: ClusterId, { service, caBundle, insecure }: RemoteServer) {
    return {
      cluster,
      url: new URL(`https://${service.name}.${service.namespace}.svc:${service.port}`),
      insecure,
      client: this.#dependencies.frontProxy(cluster).client,
      ...(caBundle === undefined || caBundle.trim() === '' ? {} : { caBundle }),
    }
  }
}

function single(headers: Readonly<Record<string, string | string[]>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}
