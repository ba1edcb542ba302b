// Connections from the API server to members: made when needed, from the same Secret as the operator's.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError, serviceUnavailable } from '../../apimachinery/status/index.ts'
import {
  createClient,
  createInformer,
  httpTransport,
  loadKubeconfig,
  type DeepReadonly,
  type Informer,
  type KubeClient,
  type Transport,
} from '../../client/index.ts'
import { memberClusters, memberIdOf, type MemberCluster } from '../../crds/index.ts'
import type { Logger } from '../../telemetry/index.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

export interface MemberConnection {
  readonly name: string
  readonly transport: Transport
  readonly client: KubeClient
}

export interface MembersOptions {
  /** To where MemberClusters live: the host, or our own server. */
  readonly transport: Transport
  /** Put before every path there, such as `/clusters/root`. Default none. */
  readonly basePath?: string
  readonly log: Logger
  readonly signal: AbortSignal
}

interface Kept extends MemberConnection {
  readonly kubeconfig: string
}

export class MemberConnections implements AsyncDisposable {
  readonly #clusters: KubeClient
  readonly #informer: Informer<MemberCluster>
  readonly #connections = new Map<string, Kept>()

  constructor({ transport, basePath = '', log, signal }: MembersOptions) {
    this.#clusters = createClient(transport, { basePath })
    this.#informer = createInformer<MemberCluster>({ client: this.#clusters, gvr: memberClusters, log, signal })
    this.#informer.onChange(({ key, after }) => {
      if (after === undefined) void this.#close(key)
    })
  }

  /** The connection to this member. Rejects ServiceUnavailable where there is none to be had. */
  async byName(name: string, signal: AbortSignal): Promise<MemberConnection> {
    await this.#informer.synced(signal)
    const member = this.#informer.store.get(name)
    if (member === undefined) throw serviceUnavailable(`there is no member cluster "${name}" any more`)
    return await this.#connect(member, signal)
  }

  /** The member of this short id, undefined where there is none. */
  async byId(id: string, signal: AbortSignal): Promise<MemberConnection | undefined> {
    await this.#informer.synced(signal)
    const member = this.#informer.store
      .list()
      .find(({ status }) => status?.id !== undefined && memberIdOf(status.id) === id)
    return member === undefined ? undefined : await this.#connect(member, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer[Symbol.asyncDispose]()
    await Promise.all([...this.#connections.keys()].map((name) => this.#close(name)))
  }

  /** The Secret is read each time: rotated credentials count at once, revoked ones are not used again. */
  async #connect(member: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<MemberConnection> {
    const { name } = member.metadata
    const ref = member.spec?.connection?.kubeconfigSecretRef
    if (ref === undefined) throw serviceUnavailable(`member cluster "${name}" has no connection`)
    const secret = await this.#clusters.tryGet<KubeObject>(
      secrets,
      { namespace: ref.namespace, name: ref.name },
      { signal },
    )
    const data = (secret?.['data'] as Record<string, string> | undefined)?.[ref.key ?? 'kubeconfig']
    if (data === undefined) throw serviceUnavailable(`the credentials for member cluster "${name}" are not there`)
    const known = this.#connections.get(name)
    if (known?.kubeconfig === data) return known
    // Not trusted: it may name nothing but a server, a CA and a token or certificate.
    const transport = httpTransport(await loadKubeconfig({ text: Buffer.from(data, 'base64').toString() }))
    const connection = { name, transport, client: createClient(transport), kubeconfig: data }
    // Another request may have connected while we read the kubeconfig: what it uses must not be closed under it.
    const raced = this.#connections.get(name)
    if (raced?.kubeconfig === data) {
      await transport[Symbol.asyncDispose]()
      return raced
    }
    this.#connections.set(name, connection)
    await raced?.transport[Symbol.asyncDispose]()
    return connection
  }

  async #close(name: string): Promise<void> {
    const known = this.#connections.get(name)
    this.#connections.delete(name)
    await known?.transport[Symbol.asyncDispose]()
  }
}

/** What a tenant is told when a member can't be reached: its name, not its address. */
export function memberUnavailable(name: string, error: unknown): Error {
  if (isStatusError(error) && error.code !== 503 && error.code !== 401 && error.code !== 403) return error
  return serviceUnavailable(`member cluster "${name}" can't be reached now`, error)
}
