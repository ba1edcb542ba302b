// The members this process is connected to, and their running syncers.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  createInformer,
  type DeepReadonly,
  type Informer,
  type KubeClient,
  withoutManagedFields,
} from '#client/index.ts'
import {
  connectToMember,
  isSameWay,
  memberTimeouts,
  memberWay,
  type MemberConnection,
  type MemberDialer,
} from '#client/member/index.ts'
import {
  type ClassKind,
  classKinds,
  isSystemPriorityClass,
  maxClasses,
  type MemberClasses,
  memberClassOf,
  type MemberCluster,
  type SuspendedDeletions,
  type SyncFailureReport,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

interface WatchOptions {
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called with the name of a member whose classes have changed. */
  readonly changed: (name: string) => void
  /** Absent: members in pull mode are not reached. */
  readonly dialer?: MemberDialer
}

/** A syncer that runs. */
export interface RunningSync extends AsyncDisposable {
  /** The logical clusters whose deletions it suspends, because too many workloads are not known upstream any more. */
  suspendedDeletions(): readonly SuspendedDeletions[]
  /** The objects of tenants that it cannot sync; undefined if there are none. */
  failures(): SyncFailureReport | undefined
}

interface RunningSyncer {
  readonly connection: MemberConnection
  /** The identity with which the syncer was started; with another one the syncer must be started again. */
  readonly identity: string
  readonly syncer: RunningSync
}

type StartSyncer = (connection: Pick<MemberConnection, 'client' | 'transport'>) => Promise<RunningSync>

export class ConnectedMembers implements AsyncDisposable {
  readonly #clusters: KubeClient
  readonly #connections = new Map<string, MemberConnection>()
  readonly #syncers = new Map<string, RunningSyncer>()
  readonly #classes = new Map<string, WatchedClasses>()
  readonly #watch: WatchOptions

  /** `clusters`: the API with the MemberClusters and the Secrets of their kubeconfigs. */
  constructor(clusters: KubeClient, watch: WatchOptions) {
    this.#clusters = clusters
    this.#watch = watch
  }

  /** The classes of the member by kind, as far as they are known by now. */
  classesOf(name: string): MemberClasses[] {
    return this.#classes.get(name)?.current() ?? []
  }

  /** The logical clusters whose deletions the syncer of the member suspends now. */
  suspendedDeletionsOf(name: string): readonly SuspendedDeletions[] {
    return this.#syncers.get(name)?.syncer.suspendedDeletions() ?? []
  }

  /** The objects that the syncer of the member cannot sync now. */
  failuresOf(name: string): SyncFailureReport | undefined {
    return this.#syncers.get(name)?.syncer.failures()
  }

  clientOf(name: string): KubeClient | undefined {
    return this.#connections.get(name)?.client
  }

  /** The kubeconfig of the present connection; undefined if there is none, or the member is in pull mode. */
  kubeconfigOf(name: string): string | undefined {
    const way = this.#connections.get(name)?.way
    return way?.kind === 'kubeconfig' ? way.text : undefined
  }

  /** Connects to the member, again if the way to it has changed. Rejects if there is no usable way. */
  async connect(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<KubeClient> {
    const { name } = object.metadata
    const found = await memberWay(object, this.#clusters, signal)
    if (found.kind === 'none')
      throw new Error(
        'it has neither spec.connection.kubeconfigSecretRef nor spec.connection.agent: kcp member join sets one',
      )
    if (found.kind === 'noSecret') throw new Error(`Secret "${found.secret}" with key "${found.key}" does not exist`)
    const known = this.#connections.get(name)
    if (known !== undefined && isSameWay(known.way, found)) return known.client
    const { dialer } = this.#watch
    const connection = await connectToMember(found, {
      responseTimeoutMs: memberTimeouts.responseMs,
      ...(dialer && { dialer }),
    })
    this.#connections.set(name, connection)
    await this.#watchClasses(name, connection.client)
    // A syncer on the old connection is replaced by sync(), which then closes that connection.
    if (known !== undefined && this.#syncers.get(name)?.connection !== known) await known[Symbol.asyncDispose]()
    return connection.client
  }

  /** The uid of kube-system in the cluster of the member's agent; undefined if the agent is not connected. */
  async uidThroughAgent({ metadata }: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<string | undefined> {
    const { dialer } = this.#watch
    if (dialer === undefined) return undefined
    const way = { kind: 'agent', member: { name: metadata.name, uid: metadata.uid ?? '' } } as const
    await using connection = await connectToMember(way, { responseTimeoutMs: memberTimeouts.probeMs, dialer })
    try {
      const found = await connection.client.get<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
      return found.metadata.uid
    } catch (error) {
      if (signal.aborted) throw error
      return undefined
    }
  }

  /** Makes sure that a syncer with this identity runs on the present connection. */
  async sync(name: string, identity: string, start: StartSyncer): Promise<void> {
    const connection = this.#connections.get(name)
    if (connection === undefined) return
    const running = this.#syncers.get(name)
    if (running?.connection === connection && running.identity === identity) return
    await this.stopSyncer(name)
    this.#syncers.set(name, { connection, identity, syncer: await start(connection) })
  }

  async stopSyncer(name: string): Promise<void> {
    const running = this.#syncers.get(name)
    if (running === undefined) return
    this.#syncers.delete(name)
    await running.syncer[Symbol.asyncDispose]()
    if (this.#connections.get(name) !== running.connection) await running.connection[Symbol.asyncDispose]()
  }

  async #watchClasses(name: string, client: KubeClient): Promise<void> {
    await this.#classes.get(name)?.[Symbol.asyncDispose]()
    const { log, signal, changed } = this.#watch
    this.#classes.set(name, new WatchedClasses(client, { log, signal, changed: () => changed(name) }))
  }

  /** Stops the syncer and closes the connection. */
  async disconnect(name: string): Promise<void> {
    await this.stopSyncer(name)
    await this.#classes.get(name)?.[Symbol.asyncDispose]()
    this.#classes.delete(name)
    const connection = this.#connections.get(name)
    this.#connections.delete(name)
    await connection?.[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const names = new Set([...this.#syncers.keys(), ...this.#connections.keys()])
    await Promise.all([...names].map((name) => this.disconnect(name)))
  }
}

/** Watches the classes of a member until it is disposed of. */
class WatchedClasses implements AsyncDisposable {
  readonly #informers: readonly { readonly kind: ClassKind; readonly informer: Informer<KubeObject> }[]

  /** `changed` is called when a class changes, and for each class at the start. */
  constructor(
    client: KubeClient,
    { log, signal, changed }: { readonly log: Logger; readonly signal: AbortSignal; readonly changed: () => void },
  ) {
    // A member that joined before kcp read classes refuses to list them, so the informer retries rarely.
    const backoff = { firstMs: 1000, maxMs: 60_000 }
    this.#informers = classKinds.map((kind) => {
      const informer = createInformer<KubeObject>({
        client,
        gvr: kind.gvr,
        transform: withoutManagedFields,
        backoff,
        log,
        signal,
      })
      informer.onChange(changed)
      informer.synced(signal).then(changed, () => undefined)
      return { kind, informer }
    })
  }

  /** The classes by kind; a kind that could not be read yet is absent. */
  current(): MemberClasses[] {
    return this.#informers.flatMap(({ kind, informer }) => {
      if (!informer.hasSynced) return []
      const items = informer.store
        .list()
        .map((object) => memberClassOf(kind, object as KubeObject))
        .filter(({ name }) => kind.kind !== 'PriorityClass' || !isSystemPriorityClass(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      const truncated = items.length > maxClasses ? { truncated: true } : {}
      return [{ kind: kind.kind, ...truncated, items: items.slice(0, maxClasses) }]
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#informers.map(({ informer }) => informer[Symbol.asyncDispose]()))
  }
}
