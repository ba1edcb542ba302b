// The syncer of one member: copies what is placed there into the member, and reports what the member makes of it upstream.
import type { ClusterId, KubeObject } from '../apimachinery/meta/index.ts'
import { childSignal, systemClock, type Clock } from '../async/index.ts'
import {
  createInformer,
  namespaceKeyOf,
  ObjectIndex,
  withoutManagedFields,
  type DeepReadonly,
  type Informer,
  type KubeClient,
} from '../client/index.ts'
import { isWorkloadResource, managedLabel, workloadKinds } from '../crds/index.ts'
import { createKeyQueue, runController, type KeyQueue, type ReconcileResult } from '../reconcile/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { visitLeftover, visitNamespace } from './visit-namespace.ts'
import { visitObject } from './down-object.ts'
import { tenantZone } from './member-dns/corefile.ts'
import { visitWorkloadStatus } from './member-status.ts'
import { gvrs, type ResourceName } from './resources/resources.ts'
import {
  clusterOfVisit,
  parseVisit,
  visitKey,
  type SyncContext,
  type SyncedMember,
  type Visit,
} from './sync-context.ts'
import { listen, type TriggerContext } from './triggers.ts'
import { reportEndpoints, visitRemoteSlice, visitSlice } from './up-endpoint-slices.ts'
import { visitHistory } from './up-history.ts'
import { passOnDeletion, visitPod } from './up-pods.ts'
import { forEachResource, type Upstream } from './upstream.ts'
import { Views } from './views.ts'

export interface SyncerOptions {
  readonly member: SyncedMember
  readonly upstream: Upstream
  /** The member's API, with the rights that joining gave. */
  readonly downstream: KubeClient
  /** Address at which pods of this member reach the API of their logical cluster. */
  readonly apiAddress: { readonly host: string; readonly port: number }
  /** Address of our nameserver in the member; absent: pods use the member's DNS. */
  readonly nameserver?: string
  readonly log: Logger
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Number of visits that run at the same time. Default 8. */
  readonly workers?: number
}

export interface Syncer extends AsyncDisposable {
  /** Resolves when the caches of both sides are complete and the first visits are queued. */
  synced(signal: AbortSignal): Promise<void>
}

/** Starts a syncer. It writes nothing before the caches of both sides are complete, and ends with its signal or disposal. */
export function startSyncer(options: SyncerOptions): Syncer {
  const life = childSignal(options.signal)
  const log = options.log.with({ member: options.member.name })
  const caches = downstreamCaches(options.downstream, log, life.signal)
  const queue = createKeyQueue({ maxMs: 10_000, fairnessKey: clusterOfVisit })
  const ready = Promise.withResolvers<undefined>()
  ready.promise.catch(() => undefined)
  const done = run({ ...options, log, signal: life.signal }, caches, queue, () => ready.resolve(undefined)).catch(
    (error: unknown) => {
      ready.reject(error)
      if (!life.signal.aborted) log.error('the syncer of a member ended', { error })
    },
  )
  return {
    async synced(signal) {
      signal.throwIfAborted()
      const aborted = Promise.withResolvers<never>()
      const abort = (): void => aborted.reject(signal.reason as Error)
      signal.addEventListener('abort', abort, { once: true })
      try {
        await Promise.race([ready.promise, aborted.promise])
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the syncer was closed', 'AbortError'))
      life[Symbol.dispose]()
      await done
      queue[Symbol.dispose]()
      await Promise.all(Object.values(caches).map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

/** Of the informers in the member. Short, so that a member that comes back is noticed within seconds. */
const backoff = { firstMs: 100, maxMs: 5000 }

type Caches = Record<ResourceName, Informer<KubeObject>>

function downstreamCaches(client: KubeClient, log: Logger, signal: AbortSignal): Caches {
  const labelSelector = `${managedLabel}=true`
  return Object.fromEntries(
    Object.entries(gvrs).map(([resource, gvr]) => [
      resource,
      createInformer<KubeObject>({ client, gvr, labelSelector, transform: withoutManagedFields, backoff, log, signal }),
    ]),
  ) as Caches
}

async function run(options: SyncerOptions, caches: Caches, queue: KeyQueue, started: () => void): Promise<void> {
  const { member, upstream, downstream, signal, log, workers = 8 } = options
  await Promise.all([upstream.synced(signal), ...Object.values(caches).map((informer) => informer.synced(signal))])
  const up = upstream.byNamespace
  const down = forEachResource((resource) => new ObjectIndex(caches[resource], (key) => [namespaceKeyOf(key)]))
  const upstreamIn = (resource: ResourceName, cluster: string, namespace: string): Iterable<DeepReadonly<KubeObject>> =>
    up[resource].of(`${cluster}|${namespace}`)
  const views = new Views(
    member,
    (cluster, namespace) => workloadKinds.flatMap(({ gvr }) => [...upstreamIn(gvr.resource, cluster, namespace)]),
    (cluster) => [...up.namespaces.of(`${cluster}|`)].map(({ metadata }) => metadata.name ?? ''),
  )
  const deleted = new Map<string, DeepReadonly<KubeObject>>()
  const context: TriggerContext = {
    member,
    upstream,
    downstream,
    caches,
    clock: options.clock ?? systemClock,
    log,
    views,
    view: (cluster, namespace) => views.of(cluster, namespace),
    namespacesOf: (cluster) => views.namespacesOf(cluster),
    presentIn: (cluster) => views.presentIn(cluster),
    upstreamIn,
    downstreamIn: (resource, namespace) => down[resource].of(namespace),
    podContext: (_cluster: string, id: ClusterId, namespace: string) => ({
      namespace,
      audience: `${id}.${member.id}`,
      apiAddress: options.apiAddress,
      ...(member.annotationPrefixes && { annotationPrefixes: member.annotationPrefixes }),
      ...(options.nameserver !== undefined && {
        nameserver: { address: options.nameserver, domain: `${id}.${tenantZone}` },
      }),
    }),
    enqueue: (visit) => queue.add(visitKey(visit)),
    podDeleted: ({ key, before }) => {
      if (before !== undefined) deleted.set(`pod ${key}`, before)
    },
  }
  const end = listen(context)
  started()
  try {
    await runController({
      name: 'syncer',
      queue,
      workers,
      log,
      signal,
      reconcile: async (key, life) => await visitOne(context, key, deleted, life),
    })
  } finally {
    end()
    for (const index of Object.values(down)) index[Symbol.dispose]()
  }
}

async function visitOne(
  context: SyncContext,
  key: string,
  deleted: Map<string, DeepReadonly<KubeObject>>,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const visit = parseVisit(key)
  if (visit.kind === 'pod') {
    const copy = deleted.get(key)
    if (copy !== undefined) {
      await passOnDeletion(context, visit, copy, signal)
      deleted.delete(key)
    }
  }
  await visitKind(context, visit, signal)
  return undefined
}

async function visitKind(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  if (isWorkloadResource(visit.kind)) {
    await visitObject(context, visit, signal)
    return visitWorkloadStatus(context, { ...visit, resource: visit.kind }, signal)
  }
  switch (visit.kind) {
    case 'namespace':
      return visitNamespace(context, visit, signal)
    case 'leftover':
      return visitLeftover(context, visit, signal)
    case 'history':
      return visitHistory(context, visit, signal)
    case 'pod':
      return visitPod(context, visit, signal)
    case 'slice':
      return visitSlice(context, visit, signal)
    case 'remoteSlice':
      return visitRemoteSlice(context, visit, signal)
    case 'services': {
      const copied = await visitObject(context, visit, signal)
      return reportEndpoints(context, visit, copied !== undefined, signal)
    }
    case 'configmaps':
    case 'secrets':
    case 'serviceaccounts':
      await visitObject(context, visit, signal)
  }
}
