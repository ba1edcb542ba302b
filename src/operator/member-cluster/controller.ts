// MemberClusters: their status, a syncer for each one that answers, and their end.
import { clusterIdOf, type KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '../../async/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '../../client/index.ts'
import {
  logicalClusters,
  memberClusters,
  memberIdOf,
  systemNamespace,
  type LogicalCluster,
  type MemberCluster,
} from '../../crds/index.ts'
import { createKeyQueue, runController, type Outcome } from '../../reconcile/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { OperatorContext, OperatorController } from '../operator-context.ts'
import { membersOf, PlacedWorkloads } from './placed-workloads.ts'
import { removeOurs } from './remove-ours.ts'
import { connect, kubeconfigOf, probe, type Connection } from './connection.ts'
import { memberStatus, type Probe } from './status.ts'

/** Kept on a MemberCluster until nothing of any logical cluster is in the member. */
export const memberFinalizer = 'kcp.dev/member'

/** A member that answers, to be synced with until `signal` aborts. */
export interface MemberToSync {
  readonly name: string
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  readonly serviceNetwork: 'None' | 'Flat'
  readonly client: KubeClient
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface MemberClusterDeps {
  /** Starts a syncer. Whoever wires the program knows how: this controller only knows when. */
  readonly startSyncer: (member: MemberToSync, context: OperatorContext) => Promise<AsyncDisposable>
  readonly clock?: Clock
  /** Between two looks at a member. Default 10. */
  readonly probeSeconds?: number
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const probeTimeoutMs = 10_000
/** A look at a member that is gone takes the whole timeout: dozens of such must not keep the others waiting. */
const workers = 64
const remainingSeconds = 2

export function memberClusterController(deps: MemberClusterDeps): OperatorController {
  return {
    name: 'member-cluster',
    async run(context, { signal, started }) {
      const informer = context.informers.of<MemberCluster>(memberClusters)
      using queue = createKeyQueue({ maxMs: 30_000 })
      await using placed = new PlacedWorkloads(context, signal)
      await using members = new Members({ context, informer, placed, deps, signal })
      const end = informer.onChange(({ key, before, after }) => {
        // Our own writes of status are no reason to look again.
        const same =
          before?.metadata.generation === after?.metadata.generation &&
          before?.metadata.deletionTimestamp === after?.metadata.deletionTimestamp
        if (before === undefined || after === undefined || !same) queue.add(key)
      })
      try {
        await informer.synced(signal)
        started()
        await runController({
          name: 'member-cluster',
          queue,
          workers,
          reconcile: async (name, life) => await members.reconcile(name, life),
          log: context.log,
          signal,
        })
      } finally {
        end()
      }
    },
  }
}

interface Running extends AsyncDisposable {
  readonly connection: Connection
  /** What the syncer was started for; another value means another syncer. */
  readonly identity: string
}

interface MembersParts {
  readonly context: OperatorContext
  readonly informer: Informer<MemberCluster>
  readonly placed: PlacedWorkloads
  readonly deps: MemberClusterDeps
  readonly signal: AbortSignal
}

class Members implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #workloads: PlacedWorkloads
  readonly #informer: Informer<MemberCluster>
  readonly #deps: Required<MemberClusterDeps>
  readonly #signal: AbortSignal
  readonly #connections = new Map<string, Connection>()
  readonly #syncers = new Map<string, Running>()
  /** How many workloads of a member that is deleted the log told of last. */
  readonly #told = new Map<string, number>()

  constructor({ context, informer, placed, deps, signal }: MembersParts) {
    const { startSyncer, clock = systemClock, probeSeconds = 10 } = deps
    this.#context = context
    this.#workloads = placed
    this.#informer = informer
    this.#deps = { startSyncer, clock, probeSeconds }
    this.#signal = signal
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Outcome> {
    const object = this.#informer.store.get(name)
    if (object === undefined) {
      await this.#forget(name)
      return {}
    }
    if (object.metadata.deletionTimestamp !== undefined) return await this.#retire(object, signal)
    await this.#takeFinalizer(object, signal)
    const found = await this.#look(object, signal)
    const twin = found.kind === 'answered' ? this.#twinOf(object, found.uid) : undefined
    await this.#writeStatus(object, found, twin, signal)
    if (found.kind === 'answered' && twin === undefined) await this.#sync(object, memberIdOf(found.uid))
    if (twin !== undefined) await this.#stopSyncer(name)
    return { requeueAfterSeconds: this.#deps.probeSeconds }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#syncers.keys()].map((name) => this.#forget(name)))
    await Promise.all([...this.#connections.keys()].map((name) => this.#forget(name)))
  }

  async #look(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<Probe> {
    try {
      const connection = await this.#connect(object, signal)
      return await probe(connection.client, { timeoutMs: probeTimeoutMs, signal })
    } catch (error) {
      if (signal.aborted) throw error
      return { kind: 'unusable', message: error instanceof Error ? error.message : String(error) }
    }
  }

  async #connect(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<Connection> {
    const { name } = object.metadata
    const text = await kubeconfigOf(object, this.#context.clusters, signal)
    const known = this.#connections.get(name)
    if (known?.kubeconfig === text) return known
    const connection = await connect(text)
    this.#connections.set(name, connection)
    // The syncer on the old credentials is replaced by #sync; only then may its connection close.
    if (known !== undefined && this.#syncers.get(name)?.connection !== known) await known[Symbol.asyncDispose]()
    return connection
  }

  /** The same physical cluster under an older name. */
  #twinOf(object: DeepReadonly<MemberCluster>, uid: string): string | undefined {
    const older = (one: DeepReadonly<MemberCluster>): boolean => {
      const [a = '', b = ''] = [one.metadata.creationTimestamp, object.metadata.creationTimestamp]
      return a < b || (a === b && one.metadata.name < object.metadata.name)
    }
    return this.#informer.store
      .list()
      .find((one) => one.metadata.name !== object.metadata.name && one.status?.id === uid && older(one))?.metadata.name
  }

  async #writeStatus(
    object: DeepReadonly<MemberCluster>,
    found: Probe,
    twin: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { name, generation = 0 } = object.metadata
    const nowMs = this.#deps.clock.now()
    const previous = object.status as MemberCluster['status']
    const state = object.metadata.deletionTimestamp === undefined ? (object.spec?.state ?? 'Active') : 'Draining'
    const placed = await this.#workloads.of(name, signal)
    const status = memberStatus({
      previous,
      generation,
      state,
      probe: found,
      twin,
      placed,
      nowMs,
      now: timestamp(nowMs),
    })
    if (status === previous) return
    await this.#context.clusters.patch(memberClusters, { name }, 'merge', { status }, { subresource: 'status', signal })
  }

  /** As #workloads knows them, but asked of the server: nothing is let go on the strength of a cache alone. */
  async #placedNow(name: string, signal: AbortSignal): Promise<string[]> {
    const known = await this.#workloads.of(name, signal)
    if (known.length > 0) return known
    const { items } = await this.#context
      .virtual('/clusters/*')
      .list<KubeObject>(deployments, { metadataOnly: true, signal })
    return items
      .filter((item) => membersOf(item).includes(name))
      .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name ?? ''}`)
  }

  async #sync(object: DeepReadonly<MemberCluster>, id: string): Promise<void> {
    const { name } = object.metadata
    const connection = this.#connections.get(name)
    if (connection === undefined) return
    const serviceNetwork = object.spec?.serviceNetwork?.type ?? 'None'
    const identity = `${id} ${serviceNetwork}`
    const running = this.#syncers.get(name)
    if (running?.connection === connection && running.identity === identity) return
    await this.#stopSyncer(name)
    const { log } = this.#context
    log.info('starting to sync with a member', { member: name, id, serviceNetwork })
    const syncer = await this.#deps.startSyncer(
      { name, id, serviceNetwork, client: connection.client, log, signal: this.#signal },
      this.#context,
    )
    this.#syncers.set(name, { connection, identity, [Symbol.asyncDispose]: () => syncer[Symbol.asyncDispose]() })
  }

  async #stopSyncer(name: string): Promise<void> {
    const running = this.#syncers.get(name)
    if (running === undefined) return
    this.#syncers.delete(name)
    await running[Symbol.asyncDispose]()
    if (this.#connections.get(name) !== running.connection) await running.connection[Symbol.asyncDispose]()
  }

  #clusterIds(): ReadonlySet<string> {
    const clusters = this.#context.informers.of<LogicalCluster>(logicalClusters).store.list()
    return new Set(clusters.map(({ metadata }) => clusterIdOf(metadata.uid ?? '')))
  }

  async #forget(name: string): Promise<void> {
    this.#told.delete(name)
    await this.#stopSyncer(name)
    const connection = this.#connections.get(name)
    this.#connections.delete(name)
    await connection?.[Symbol.asyncDispose]()
  }

  async #takeFinalizer({ metadata }: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<void> {
    if (metadata.finalizers?.includes(memberFinalizer)) return
    await this.#writeFinalizers(metadata, [...(metadata.finalizers ?? []), memberFinalizer], signal)
  }

  async #writeFinalizers(
    { name, resourceVersion }: DeepReadonly<MemberCluster['metadata']>,
    finalizers: string[],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#context.clusters.patch(
      memberClusters,
      { name },
      'merge',
      { metadata: { resourceVersion, finalizers } },
      { signal },
    )
  }

  /**
   * Deletion drains: placement takes it for Draining, so what runs there moves or is Held. When nothing is left, our own
   * parts leave the member, our identity last, and the object may go.
   */
  async #retire(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<Outcome> {
    const { name, finalizers = [] } = object.metadata
    if (!finalizers.includes(memberFinalizer)) return {}
    const found = await this.#look(object, signal)
    if (found.kind === 'answered' && this.#twinOf(object, found.uid) === undefined)
      await this.#sync(object, memberIdOf(found.uid))
    const remaining = await this.#placedNow(name, signal)
    if (remaining.length > 0) {
      if (this.#told.get(name) !== remaining.length) {
        const keys = { member: name, remaining: remaining.length, first: remaining[0] }
        this.#context.log.info('a member that is deleted still has workloads', keys)
        this.#told.set(name, remaining.length)
      }
      await this.#writeStatus(object, found, undefined, signal)
      return { requeueAfterSeconds: remainingSeconds }
    }
    const connection = this.#connections.get(name)
    const twin = found.kind === 'answered' ? this.#twinOf(object, found.uid) : undefined
    await this.#stopSyncer(name)
    if (found.kind === 'answered' && twin === undefined && connection !== undefined)
      await removeOurs(connection.client, this.#clusterIds(), signal)
    const ref = object.spec?.connection?.kubeconfigSecretRef
    if (ref?.namespace === systemNamespace && ref.name === `member-${name}`)
      await this.#context.clusters
        .delete(secrets, { namespace: ref.namespace, name: ref.name }, { signal })
        .catch(tolerate('NotFound'))
    await this.#writeFinalizers(
      object.metadata,
      finalizers.filter((one) => one !== memberFinalizer),
      signal,
    )
    await this.#forget(name)
    return {}
  }
}
