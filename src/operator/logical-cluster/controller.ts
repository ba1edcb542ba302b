// The controller of LogicalClusters: from creation to Ready, and from deletion until nothing is left.
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '#client/index.ts'
import {
  auditDelivered,
  chainOf,
  filledAnnotation,
  fillingOf,
  findCondition,
  logicalClusters,
  logicalClusterSnapshots,
  memberClusters,
  snapshotStores,
  systemNamespace,
  transferAnnotation,
  transferOf,
  type LogicalCluster,
  type LogicalClusterSnapshot,
  type LogicalClusterStatus,
  type SnapshotStore,
} from '#crds/index.ts'
import { createKeyQueue, runController, type KeyQueue, type ReconcileResult } from '#reconcile/index.ts'
import {
  keptVolumes,
  restoreSnapshot,
  SnapshotError,
  snapshotPath,
  tarType,
  transferPath,
  transferSecretName,
  type Restored,
  type RestoreOptions,
  type SnapshotSource,
  type TransferState,
} from '#snapshot/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent, type EventText } from '#operator/framework/record-event.ts'
import { ResilientOperator } from '#operator/framework/resilient-operator.ts'
import { withSnapshot } from '#operator/snapshot-stores/read-snapshot.ts'
import { apply, type ApplyContext } from './apply.ts'
import { followSecrets } from './kubeconfigs/follow-secrets.ts'
import { keepKubeconfigs, removeKubeconfigs, type KeepContext } from './kubeconfigs/keep-kubeconfigs.ts'
import { kubeconfigsCondition, type KubeconfigsOutcome } from './kubeconfigs/outcome.ts'
import { inspectContent, probe } from './observe.ts'
import { contentRetrySeconds, plan, type Observed } from './plan.ts'

/**
 * Probes that may fail before the status says so: the API server can learn of a new logical cluster later than we do.
 */
const unreportedProbeFailures = 4

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

/** Seconds between two looks at a logical cluster that comes from another installation. */
const arrivalRetrySeconds = 2

/** Rounds of observe, plan and apply in one reconcile. The longest plan needs four; more would be an endless loop. */
const maxRounds = 5

/** Takes LogicalClusters from creation to Ready, and through their deletion. */
export function logicalClusterController({ clock = systemClock }: { readonly clock?: Clock } = {}): OperatorController {
  return {
    name: 'logical-cluster',
    run: (context, life) => run(context, { ...life, clock }),
  }
}

async function run(
  context: OperatorContext,
  { signal, started, clock }: Parameters<OperatorController['run']>[1] & { readonly clock: Clock },
): Promise<void> {
  const members = context.informers.of(memberClusters)
  const objects = context.informers.of<LogicalCluster>(logicalClusters)
  // The first reconcile must know whether there are members: without members, no content can be in one.
  await Promise.all([members.synced(signal), objects.synced(signal)])
  using queue = createKeyQueue({ firstMs: 5 })
  const operator = new LogicalClusterOperator(context, { queue, objects, memberCount: () => members.store.size, clock })
  await operator.start()
  started()
  const { clusters, log } = context
  // A change of a parent concerns all that is below.
  const unfollow = objects.onChange(({ before, after }) => {
    if (before === undefined || JSON.stringify(placeOf(before)) === JSON.stringify(placeOf(after))) return
    for (const { metadata, spec } of objects.store.list()) if (spec?.parentRef !== undefined) queue.add(metadata.name)
  })
  const following = followSecrets({ clusters, objects, changed: (name) => queue.add(name), log, signal })
  const reconcile = (key: string, signal: AbortSignal): Promise<ReconcileResult> => operator.reconcile(key, signal)
  await runController({ name: 'logical-cluster', queue, workers: 8, reconcile, log, signal })
  operator.stop()
  unfollow()
  await following
}

/** Puts the objects of a snapshot into the logical cluster. */
type Put = (source: SnapshotSource, volumes?: RestoreOptions['volumes']) => Promise<Restored>

interface Dependencies {
  readonly queue: KeyQueue
  readonly objects: Informer<LogicalCluster>
  readonly memberCount: () => number
  readonly clock: Clock
}

class LogicalClusterOperator extends ResilientOperator {
  readonly #context: OperatorContext
  readonly #dependencies: Dependencies
  /** Since when the audit webhooks fail of which an Event tells, by name of the LogicalCluster. */
  readonly #failingWebhooks = new Map<string, string>()

  constructor(context: OperatorContext, dependencies: Dependencies) {
    super({ client: context.clusters, informers: context.informers, log: context.log })
    this.#context = context
    this.#dependencies = dependencies
  }

  protected override async init(): Promise<void> {
    const { group, version, resource } = logicalClusters
    await this.watchResource(group, version, resource, async ({ meta }) => this.#dependencies.queue.add(meta.name))
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const virtual = this.#context.virtual(`/clusters/${name}`)
    let observed: Pick<Observed, 'served' | 'filled' | 'content' | 'kubeconfigs'> = {}
    let result: ReconcileResult = {}
    for (let round = 0; round < maxRounds; round++) {
      const object = this.#object(name)
      await this.#tellOfAudit(name, object, signal)
      if (object === undefined) return {}
      const now = timestamp(this.#dependencies.clock.now())
      const steps = plan({ object, urls: this.#context.urls(name), now, ...this.#tree(object), ...observed })
      let planAgain = false
      for (const step of steps) {
        if (step.do === 'probe') {
          const mayThrow = this.#dependencies.queue.failures(name) < unreportedProbeFailures
          observed = { ...observed, served: await probe(virtual, { mayThrow, signal }) }
          planAgain = true
        } else if (step.do === 'fill') {
          observed = { ...observed, filled: await this.#fill(object, virtual, signal) }
          planAgain = observed.filled?.ok === false
        } else if (step.do === 'askArrived') {
          if (!(await this.#hasArrived(object, virtual, signal))) result = { requeueAfterSeconds: arrivalRetrySeconds }
        } else if (step.do === 'inspectContent') {
          const hasMembers = this.#dependencies.memberCount() > 0
          observed = {
            ...observed,
            content: await inspectContent(virtual, this.#context.clusters, { hasMembers, signal }),
          }
          planAgain = true
        } else if (step.do === 'keepKubeconfigs') {
          const current = this.#object(name)
          if (current === undefined) return {}
          const kubeconfigs = await keepKubeconfigs(current, this.#keeping(current, virtual, signal), signal)
          await this.#reportProblems(current, kubeconfigs, signal)
          observed = { ...observed, kubeconfigs }
          result = { requeueAfterSeconds: kubeconfigs.requeueAfterSeconds }
          planAgain = true
        } else if (step.do === 'waitForContent') {
          result = { requeueAfterSeconds: contentRetrySeconds(object, this.#dependencies.clock.now()) }
        } else {
          if (step.do === 'setStatus') await this.#tellOfLimits(object, step.status, signal)
          if (step.do === 'purgeAndRelease') await this.#forgetMove(object, signal)
          const { held = [], orphaned = [] } = observed.content ?? {}
          await apply(
            step,
            {
              virtual,
              held,
              orphaned,
              removeKubeconfigs: (gone) => removeKubeconfigs(gone, this.#keeping(gone, virtual, signal), signal),
              ...this.#writers(name),
            },
            signal,
          )
        }
      }
      if (!planAgain) break
    }
    // The status tells the failure. The error causes another reconcile after the backoff.
    for (const outcome of [observed.served, observed.filled])
      if (outcome?.ok === false) throw new Error(outcome.message)
    return result
  }

  /**
   * Puts the objects of spec.source into it, then notes it on the object, which brings the next reconcile. What was
   * broken off begins again and makes the same objects.
   */
  async #fill(
    object: DeepReadonly<LogicalCluster>,
    virtual: KubeClient,
    signal: AbortSignal,
  ): Promise<NonNullable<Observed['filled']>> {
    const { clusters } = this.#context
    const { name, uid = '' } = object.metadata
    const { source = {} } = object.spec ?? {}
    const from = source.snapshot?.name ?? source.logicalClusterRef?.name ?? ''
    const what = source.snapshot === undefined ? `"${from}"` : `snapshot "${from}"`
    try {
      const put: Put = (bytes, volumes) =>
        restoreSnapshot(bytes, {
          client: virtual,
          id: clusterIdOf(uid),
          validate: false,
          ...(volumes !== undefined && { volumes }),
          signal,
        })
      const restored =
        source.snapshot === undefined ? await this.#copy(from, put, signal) : await this.#restore(from, put, signal)
      const { revision } = restored.manifest
      const text = source.snapshot === undefined ? `${from}@${revision}` : `snapshot ${from}@${revision}`
      const metadata = { uid, annotations: { [filledAnnotation]: text } }
      await clusters.patch(logicalClusters, { name }, 'merge', { metadata }, { signal })
      const volumes = restored.volumes === 0 ? '' : `; ${restored.volumes} claims get their volumes from snapshots`
      const message = `it has ${restored.created + restored.updated + restored.unchanged} objects of ${what} at revision ${revision}${volumes}`
      await this.#event(object, { type: 'Normal', reason: 'Filled', message }, signal)
      return { ok: true }
    } catch (error) {
      signal.throwIfAborted()
      return { ok: false, message: `the objects of ${what} were not copied: ${(error as Error).message}` }
    }
  }

  async #copy(from: string, put: Put, signal: AbortSignal): Promise<Restored> {
    const source = this.#object(from)
    if (source === undefined) throw new SnapshotError(`LogicalCluster "${from}" does not exist`)
    const waits = fillingOf(source)
    if (waits !== undefined) throw new SnapshotError(`it is not whole itself: ${waits}`)
    return await put(await this.#context.virtual(`/clusters/${from}`).stream(snapshotPath, { accept: tarType, signal }))
  }

  async #restore(from: string, put: Put, signal: AbortSignal): Promise<Restored> {
    const { clusters, snapshotDirectory: directory } = this.#context
    const snapshot = await clusters.tryGet<LogicalClusterSnapshot>(logicalClusterSnapshots, { name: from }, { signal })
    if (snapshot === undefined) throw new SnapshotError(`LogicalClusterSnapshot "${from}" does not exist`)
    const store = await clusters.tryGet<SnapshotStore>(snapshotStores, { name: snapshot.spec.store }, { signal })
    if (store === undefined) throw new SnapshotError(`its SnapshotStore "${snapshot.spec.store}" does not exist`)
    const access = { clusters, ...(directory !== undefined && { directory }) }
    const volumes = keptVolumes(snapshot)
    return await withSnapshot(snapshot, store, access, { use: (open) => put(open, volumes), signal })
  }

  /**
   * Whether all of it has come from another installation, whose users the server lets in from then on. Notes that on
   * the object, which brings the next reconcile: its workloads are placed.
   */
  async #hasArrived(object: DeepReadonly<LogicalCluster>, virtual: KubeClient, signal: AbortSignal): Promise<boolean> {
    const { name, uid } = object.metadata
    const note = transferOf(object)
    const state = await virtual.raw(transferPath, { signal }).catch((error: unknown) => {
      // The server does not know it yet, or does not answer: the next look tells.
      if (isStatusError(error)) return undefined
      throw error
    })
    const { phase, id } = (state ?? {}) as Partial<TransferState>
    if (note === undefined || phase !== 'Open' || id !== note.id) return false
    const metadata = { uid, annotations: { [transferAnnotation]: null } }
    await this.#context.clusters.patch(logicalClusters, { name }, 'merge', { metadata }, { signal })
    await this.#event(object, { type: 'Normal', reason: 'Arrived', message: `it has come from ${note.with}` }, signal)
    return true
  }

  /** Deletes the credential for the new place of a logical cluster that has moved. */
  async #forgetMove(object: DeepReadonly<LogicalCluster>, signal: AbortSignal): Promise<void> {
    if (transferOf(object)?.role !== 'source') return
    const ref = { namespace: systemNamespace, name: transferSecretName(object.metadata.name) }
    await this.#context.clusters.delete(secrets, ref, { signal }).catch(tolerate('NotFound'))
  }

  /** The place in the tree of logical clusters. */
  #tree({ metadata, spec }: DeepReadonly<LogicalCluster>): Pick<Observed, 'parents' | 'children'> {
    const { store } = this.#dependencies.objects
    const { name, deletionTimestamp } = metadata
    if (deletionTimestamp !== undefined) {
      const children = store.list().filter((one) => one.spec?.parentRef?.name === name)
      return { children: children.map((child) => child.metadata.name) }
    }
    if (spec?.parentRef === undefined) return {}
    const { ancestors, problem } = chainOf({ name, parent: spec.parentRef.name }, (above) => placeOf(store.get(above)))
    if (problem !== undefined) return { parents: { problem } }
    return { parents: { path: [...ancestors.map((above) => above.name).reverse(), name].join(':') } }
  }

  #keeping(object: DeepReadonly<LogicalCluster>, virtual: KubeClient, signal: AbortSignal): KeepContext {
    const { clusters, issuer, urls } = this.#context
    const { url, directURL = url } = urls(object.metadata.name)
    return {
      clusters,
      virtual,
      issuer,
      server: directURL,
      nowMs: this.#dependencies.clock.now(),
      changed: (reason, message) => this.#event(object, { type: 'Normal', reason, message }, signal),
    }
  }

  /** Writes one Event if the problems with kubeconfigs are others than those in the status. */
  async #reportProblems(
    object: DeepReadonly<LogicalCluster>,
    outcome: KubeconfigsOutcome,
    signal: AbortSignal,
  ): Promise<void> {
    const now = kubeconfigsCondition(outcome)
    if (now?.status !== 'False' || findCondition(object, now.type)?.message === now.message) return
    await this.#event(object, { type: 'Warning', reason: now.reason, message: now.message }, signal)
  }

  /** Writes one Event when a limit comes near, and one when it is reached: before and at the first refusal. */
  async #tellOfLimits(
    object: DeepReadonly<LogicalCluster>,
    { conditions = [] }: LogicalClusterStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const now = conditions.find(({ type }) => type === 'WithinLimits')
    if (now?.status !== 'False' || findCondition(object, now.type)?.message === now.message) return
    await this.#event(object, { type: 'Warning', reason: now.reason, message: now.message }, signal)
  }

  /** Writes one Event when spec.audit.webhook begins to fail: the server, which writes the condition, writes no Events. */
  async #tellOfAudit(
    name: string,
    object: DeepReadonly<LogicalCluster> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const now = object && findCondition(object, auditDelivered)
    if (object === undefined || now?.status !== 'False') {
      this.#failingWebhooks.delete(name)
      return
    }
    const failure = `${object.metadata.uid} ${now.lastTransitionTime}`
    if (this.#failingWebhooks.get(name) === failure) return
    this.#failingWebhooks.set(name, failure)
    await this.#event(object, { type: 'Warning', reason: now.reason, message: now.message }, signal)
  }

  async #event(object: DeepReadonly<LogicalCluster>, text: EventText, signal: AbortSignal): Promise<void> {
    const { clusters: client, log } = this.#context
    const now = timestamp(this.#dependencies.clock.now())
    await recordEvent(object, text, { client, component: 'kcp-logical-cluster', now, log }, signal)
  }

  /** The writes of the library, on the object as it is known now. */
  #writers(name: string): Pick<ApplyContext, 'object' | 'setStatus' | 'withFinalizer'> {
    const object = this.#object(name)
    return {
      object,
      setStatus: async (status) => {
        if (object !== undefined) await this.setResourceStatus(this.eventFor(logicalClusters, object).meta, status)
      },
      withFinalizer: async (finalizer, onDelete) => {
        if (object === undefined) return
        await this.handleResourceFinalizer(this.eventFor(logicalClusters, object), finalizer, async () => onDelete())
      },
    }
  }

  /** The cached object, or our own last write of it if that is newer. */
  #object(name: string): DeepReadonly<LogicalCluster> | undefined {
    const cached = this.#dependencies.objects.store.get(name)
    return cached === undefined ? undefined : this.newest<LogicalCluster>(logicalClusters, cached)
  }
}

function placeOf(object: DeepReadonly<LogicalCluster> | undefined) {
  return object && { name: object.metadata.name, parent: object.spec?.parentRef?.name, limits: object.spec?.limits }
}
