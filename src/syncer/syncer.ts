// The syncer of one member: what is placed there goes down, what it makes of it comes up.
import type { ClusterId, KubeObject } from '../apimachinery/meta/index.ts'
import { childSignal, systemClock, type Clock } from '../async/index.ts'
import { createInformer, type DeepReadonly, type Informer, type KubeClient } from '../client/index.ts'
import { managedLabel } from '../crds/index.ts'
import { createKeyQueue, runController, type KeyQueue, type Outcome } from '../reconcile/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { visitLeftover, visitNamespace } from './leave-namespace.ts'
import { visitObject } from './down-object.ts'
import { indexesOf } from './namespace-index.ts'
import { tenantZone } from './member-dns/corefile.ts'
import { visitDeploymentStatus } from './piece.ts'
import { gvrs, type ResourceName } from './synced-kinds.ts'
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
import { slim, type Upstream } from './upstream.ts'
import { Views } from './views.ts'

export interface SyncerOptions {
  readonly member: SyncedMember
  readonly upstream: Upstream
  /** The member's API, with the rights that joining gave. */
  readonly downstream: KubeClient
  /** Where pods of this member reach the API of their logical cluster: the direct listener's advertised address. */
  readonly apiAddress: { readonly host: string; readonly port: number }
  /** The address of the nameserver in the member that knows tenants; absent: pods keep the member's own DNS. */
  readonly nameserver?: string
  readonly log: Logger
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Visits at a time. Default 8. */
  readonly workers?: number
}

export interface Syncer extends AsyncDisposable {
  /** Resolves once both sides' caches are complete and the first visits have been asked for. */
  synced(signal: AbortSignal): Promise<void>
}

/** Starts to sync. Nothing is written before both sides' caches are complete. It ends with its signal or its disposal. */
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

/** A member that comes back is not kept waiting: asking nine times in five seconds costs nobody anything. */
const backoff = { firstMs: 100, maxMs: 5000 }

type Caches = Record<ResourceName, Informer<KubeObject>>

function downstreamCaches(client: KubeClient, log: Logger, signal: AbortSignal): Caches {
  const labelSelector = `${managedLabel}=true`
  return Object.fromEntries(
    Object.entries(gvrs).map(([resource, gvr]) => [
      resource,
      createInformer<KubeObject>({ client, gvr, labelSelector, transform: slim, backoff, log, signal }),
    ]),
  ) as Caches
}

async function run(options: SyncerOptions, caches: Caches, queue: KeyQueue, started: () => void): Promise<void> {
  const { member, upstream, downstream, signal, log, workers = 8 } = options
  await Promise.all([upstream.synced(signal), ...Object.values(caches).map((informer) => informer.synced(signal))])
  const up = upstream.spaces
  const down = indexesOf(caches)
  const upstreamIn = (resource: ResourceName, cluster: string, namespace: string): Iterable<DeepReadonly<KubeObject>> =>
    up[resource].of(`${cluster}|${namespace}`)
  const views = new Views(
    member,
    (cluster, namespace) => upstreamIn('deployments', cluster, namespace),
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
): Promise<Outcome | undefined> {
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
  switch (visit.kind) {
    case 'namespace': {
      await visitNamespace(context, visit, signal)
      return
    }
    case 'leftover': {
      await visitLeftover(context, visit, signal)
      return
    }
    case 'history': {
      await visitHistory(context, visit, signal)
      return
    }
    case 'pod': {
      await visitPod(context, visit, signal)
      return
    }
    case 'slice': {
      await visitSlice(context, visit, signal)
      return
    }
    case 'remote': {
      await visitRemoteSlice(context, visit, signal)
      return
    }
    case 'deployments':
      await visitObject(context, visit, signal)
      {
        await visitDeploymentStatus(context, visit, signal)
        return
      }
    case 'services': {
      await reportEndpoints(context, visit, (await visitObject(context, visit, signal)) !== undefined, signal)
      return
    }
    case 'configmaps':
    case 'secrets':
    case 'serviceaccounts':
      await visitObject(context, visit, signal)
  }
}
