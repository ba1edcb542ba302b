// Connections from the API server to members, made when they are needed, in the way in which the operator connects, too.
import { isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import {
  createClient,
  createInformer,
  type DeepReadonly,
  type Informer,
  type KubeClient,
  type Transport,
} from '#client/index.ts'
import { matches, memberClusters, memberIdOf, placements, type MemberCluster, type Placement } from '#crds/index.ts'
import {
  connectToMember,
  isSameWay,
  memberTimeouts,
  memberWay,
  type MemberDialer,
  type MemberWay,
} from '#client/member/index.ts'
import type { Logger } from '#telemetry/index.ts'

export interface MemberConnection {
  readonly name: string
  readonly transport: Transport
  /** The same without bounds by kind of request: responses are passed on as they arrive, whatever their type. */
  readonly passing: Transport
  readonly client: KubeClient
  readonly way: MemberWay
}

export interface MembersOptions {
  /** The transport to the API server that has the MemberClusters: the host, or our own server. */
  readonly transport: Transport
  /** The prefix of every path of that API server, such as `/clusters/root`. Default: none. */
  readonly basePath?: string
  /** Absent: members in pull mode are not reached. */
  readonly dialer?: MemberDialer
  readonly log: Logger
  readonly clock?: Clock
  readonly signal: AbortSignal
}

/** The MemberClusters, and the API that has them. */
export interface Registrations {
  readonly client: KubeClient
  readonly informer: Pick<Informer<MemberCluster>, 'store' | 'synced' | 'onChange'>
}

/**
 * The time in which changes are collected before listeners are called. Members report often, and listeners read all
 * members each time.
 */
const collectMs = 1000

export class MemberConnections implements AsyncDisposable {
  readonly #clusters: KubeClient
  readonly #dialer: MemberDialer | undefined
  readonly #informer: Informer<MemberCluster>
  readonly #placements: Informer<Placement>
  readonly #connections = new Map<string, MemberConnection>()
  /** The names of members by short id. Every request with a token of a pod reads them. */
  readonly #names = new Map<string, string>()
  readonly #listeners = new Set<() => void>()
  #telling: NodeJS.Timeout | undefined
  #isKnown = false

  constructor({ transport, basePath = '', dialer, log, signal }: MembersOptions) {
    this.#dialer = dialer
    this.#clusters = createClient(transport, { basePath })
    this.#informer = createInformer<MemberCluster>({ client: this.#clusters, gvr: memberClusters, log, signal })
    this.#placements = createInformer<Placement>({ client: this.#clusters, gvr: placements, log, signal })
    this.#informer.onChange(({ key, before, after }) => {
      const [old, id] = [shortIdOf(before), shortIdOf(after)]
      if (old !== undefined && old !== id && this.#names.get(old) === key) this.#names.delete(old)
      if (id !== undefined) this.#names.set(id, key)
      if (after === undefined) void this.#close(key)
      this.#tellSoon()
    })
    this.#placements.onChange(() => this.#tellSoon())
    const known = (): void => void (this.#isKnown = true)
    this.#informer.synced(signal).then(known, () => undefined)
  }

  /** The connection to the member of this name. Rejects with ServiceUnavailable if there is none. */
  async byName(name: string, signal: AbortSignal): Promise<MemberConnection> {
    await this.#informer.synced(signal)
    const member = this.#informer.store.get(name)
    if (member === undefined) throw serviceUnavailable(`there is no member cluster "${name}" any more`)
    return await this.#connect(member, signal)
  }

  /** The member of this name; undefined if there is none. */
  async registered(name: string, signal: AbortSignal): Promise<DeepReadonly<MemberCluster> | undefined> {
    await this.#informer.synced(signal)
    return this.#informer.store.get(name)
  }

  /** Prefixes of annotations that the member allows besides the default ones. */
  annotationPrefixesOf(name: string): readonly string[] {
    return this.#informer.store.get(name)?.spec?.annotationPrefixes ?? []
  }

  /** True if a member that logical clusters with these labels may use serves metrics of pods. */
  haveMetrics(labels: Readonly<Record<string, string>> | undefined): boolean {
    return this.#informer.store
      .list()
      .some(({ spec, status }) => status?.metricsAPI === true && matches(spec?.logicalClusterSelector, labels))
  }

  /** True if a member may run pods of a logical cluster with these labels. Also true until the members are known. */
  mayRunPods(labels: Readonly<Record<string, string>> | undefined): boolean {
    return (
      !this.#isKnown || this.#informer.store.list().some(({ spec }) => matches(spec?.logicalClusterSelector, labels))
    )
  }

  /** The name of the member of this short id; undefined if there is no such member. */
  async nameOf(id: string, signal: AbortSignal): Promise<string | undefined> {
    await this.#informer.synced(signal)
    return this.#names.get(id)
  }

  /** The connection to the member of this short id; undefined if there is no such member. */
  async byId(id: string, signal: AbortSignal): Promise<MemberConnection | undefined> {
    const name = await this.nameOf(id, signal)
    const member = name === undefined ? undefined : this.#informer.store.get(name)
    return member === undefined ? undefined : await this.#connect(member, signal)
  }

  get registrations(): Registrations {
    return { client: this.#clusters, informer: this.#informer }
  }

  /** All members, as they are known now. */
  all(): readonly DeepReadonly<MemberCluster>[] {
    return this.#informer.store.list()
  }

  /** The Placements of admins, as they are known now. */
  adminPlacements(): readonly DeepReadonly<Placement>[] {
    return this.#placements.store.list()
  }

  onChange(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => void this.#listeners.delete(changed)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#telling)
    this.#listeners.clear()
    await this.#informer[Symbol.asyncDispose]()
    await this.#placements[Symbol.asyncDispose]()
    await Promise.all([...this.#connections.keys()].map((name) => this.#close(name)))
  }

  /** Calls the listeners soon, once for all changes until then. Costs nothing while there are none. */
  #tellSoon(): void {
    if (this.#listeners.size === 0) return
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      for (const changed of this.#listeners) changed()
    }, collectMs).unref()
  }

  /**
   * Reads the Secret each time, so that rotated credentials are used at once and revoked credentials are not used
   * again.
   */
  async #connect(member: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<MemberConnection> {
    const { name } = member.metadata
    const found = await memberWay(member, this.#clusters, signal)
    if (found.kind === 'none') throw serviceUnavailable(`member cluster "${name}" has no connection`)
    if (found.kind === 'noSecret') throw serviceUnavailable(`the credentials for member cluster "${name}" do not exist`)
    const known = this.#connections.get(name)
    if (known !== undefined && isSameWay(known.way, found)) return known
    const { transport, passing, client, way } = await connectToMember(found, {
      responseTimeoutMs: memberTimeouts.streamResponseMs,
      ...(this.#dialer && { dialer: this.#dialer }),
    })
    const connection = { name, transport, passing, client, way }
    // Another request may have connected meanwhile and use its connection, so keep that connection.
    const raced = this.#connections.get(name)
    if (raced !== undefined && isSameWay(raced.way, way)) {
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

/** The error for a member that cannot be reached. It names the member, not its address. */
export function memberUnavailable(name: string, error: unknown): Error {
  if (isStatusError(error) && error.code !== 503 && error.code !== 401 && error.code !== 403) return error
  return serviceUnavailable(`member cluster "${name}" can't be reached now`, error)
}

function shortIdOf(member: DeepReadonly<MemberCluster> | undefined): string | undefined {
  const uid = member?.status?.id
  return uid === undefined ? undefined : memberIdOf(uid)
}
