// The syncer of one member: copies what is placed there into the member, and reports what the member makes of it
// upstream.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import { keyFor, type KubeClient } from '#client/index.ts'
import {
  adoptedNamespace,
  tenantZone,
  type MemberExports,
  type SuspendedDeletions,
  type SyncFailureReport,
} from '#crds/index.ts'
import { createKeyQueue, runController, type KeyQueue } from '#reconcile/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { startLabelling } from './adoption/index.ts'
import { DeletionGuard } from './context/deletion-guard.ts'
import { Drifts } from './context/drifts.ts'
import { EventBudget } from './context/event-budget.ts'
import { PassingReports } from './context/passing-reports.ts'
import type { CachedObject } from './context/resources.ts'
import type { SyncContext } from './context/sync-context.ts'
import { SyncFailures } from './context/sync-failures.ts'
import type { SyncedMember } from './context/synced-member.ts'
import { inMember, type Upstream } from './context/upstream.ts'
import { Views } from './context/views.ts'
import { clusterOfRequest, isUrgentRequest, requestKey } from './context/request.ts'
import { startExportedApis, type ExportedApis } from './exports/exported-apis.ts'
import {
  gatewayPorts,
  Indexes,
  memberCaches,
  memberEvents,
  memberNodes,
  memberSynced,
  type MemberCaches,
} from './member-caches.ts'
import { listen } from './triggers/triggers.ts'
import { reconcileKey } from './walk.ts'

export interface SyncerOptions {
  readonly member: SyncedMember
  readonly upstream: Upstream
  /** The member's API, with the rights that joining gave. */
  readonly downstream: KubeClient
  /** Address at which pods of this member reach the API of their logical cluster. */
  readonly apiAddress: { readonly host: string; readonly port: number }
  /** Address of our nameserver in the member; absent: pods use the member's DNS. */
  readonly nameserver?: string
  /** The APIs that it exports to logical clusters; absent: none. */
  readonly exports?: MemberExports
  readonly log: Logger
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Called when failures() may differ. */
  readonly failuresChanged?: () => void
  /** Number of reconciles that run at the same time. Default 8. */
  readonly workers?: number
}

export interface Syncer extends AsyncDisposable {
  /** Resolves when the caches of both sides are complete and the first reconciles are queued. */
  synced(signal: AbortSignal): Promise<void>
  /** The logical clusters whose deletions it suspends, because too many workloads are not known upstream any more. */
  suspendedDeletions(): readonly SuspendedDeletions[]
  /** The objects of tenants that it cannot sync; undefined if there are none. */
  failures(): SyncFailureReport | undefined
}

/**
 * Starts a syncer. It writes nothing before the caches of both sides are complete, and ends with its signal or
 * disposal.
 */
export function startSyncer(options: SyncerOptions): Syncer {
  const life = childSignal(options.signal)
  const log = options.log.with({ member: options.member.name })
  const caches = memberCaches({ downstream: options.downstream, log, signal: life.signal })
  const queue = createKeyQueue({ maxMs: 10_000, fairnessKey: clusterOfRequest, isUrgent: isUrgentRequest })
  const guard = new DeletionGuard(options.clock ?? systemClock)
  const failures = new SyncFailures(options.clock ?? systemClock, options.failuresChanged)
  const ready = Promise.withResolvers<undefined>()
  ready.promise.catch(() => undefined)
  const done = run({ ...options, log, signal: life.signal, guard, failures }, caches, queue, () =>
    ready.resolve(undefined),
  ).catch((error: unknown) => {
    ready.reject(error)
    if (!life.signal.aborted) log.error('the syncer of a member ended', { error })
  })
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
    suspendedDeletions: () => guard.suspended(),
    failures: () => failures.report(),
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the syncer was closed', 'AbortError'))
      life[Symbol.dispose]()
      await done
      queue[Symbol.dispose]()
      await Promise.all(Object.values(caches).map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

interface RunOptions extends SyncerOptions {
  readonly guard: DeletionGuard
  readonly failures: SyncFailures
}

/** Runs until the signal ends it. What it opens is closed in the opposite order. */
async function run(options: RunOptions, caches: MemberCaches, queue: KeyQueue, started: () => void): Promise<void> {
  const { member, upstream, signal, log, workers = 8 } = options
  await Promise.all([upstream.synced(signal), memberSynced(options, caches)])
  await using stack = new AsyncDisposableStack()
  const indexes = stack.use(new Indexes(caches, upstream, member.name))
  const deleted = new Map<string, CachedObject>()
  let exported: ExportedApis | undefined
  const context: SyncContext = {
    ...stateOf(options, caches),
    ...lookups(options, indexes),
    ...questionsTo(queue, deleted),
    // The syncer does not wait for Events: a member that refuses them still gets its workloads.
    events: stack.use(memberEvents(options, (namespace) => isAdoptedFrom(options, namespace))),
    // The syncer does not wait for nodes either: they are only shown.
    nodes: stack.use(memberNodes(options)),
    podContext: (cluster, id, namespace) => podContextOf(options, { cluster, id, namespace }),
    hasExported: (cluster, namespace) => exported?.isIn(cluster, namespace) ?? false,
  }
  // Before the first reconcile: a namespace must not be deleted because its custom resources are not known yet.
  if (options.exports) exported = stack.use(await startExportedApis(context, options.exports, signal))
  stack.use(startLabelling(context, signal))
  stack.defer(listen(context))
  started()
  await runController({
    name: 'syncer',
    queue,
    workers,
    log,
    signal,
    reconcile: (key, life) => reconcileKey(context, key, deleted, life),
  })
}

/** The member, the caches, and what the syncer remembers. */
function stateOf(
  options: RunOptions,
  caches: MemberCaches,
): Omit<SyncContext, keyof ReturnType<typeof lookups> | keyof ReturnType<typeof questionsTo> | OpenedByRun> {
  const { member, upstream, downstream, log, guard, failures, clock = systemClock } = options
  return {
    member,
    upstream,
    downstream,
    caches,
    clock,
    log,
    guard,
    failures,
    ...(member.serviceNetwork === 'Gateway' && { gateway: gatewayPorts(caches) }),
    passing: new PassingReports(clock),
    releasing: new Set(),
    eventBudget: new EventBudget(),
    drifts: new Drifts(),
    views: viewsOf(upstream, member),
  }
}

type OpenedByRun = 'events' | 'nodes' | 'podContext' | 'hasExported'

/** What each namespace has in the member by the scheduler's decisions. */
function viewsOf(upstream: Upstream, member: SyncedMember): Views {
  const { byNamespace: up, workloadsByMember, claimsByMember } = upstream
  return new Views(
    member,
    (cluster, namespace) => {
      const key = `${cluster}|${namespace}`
      const here = inMember(key, member.name)
      return {
        workloads: workloadsByMember.flatMap((index) => [...index.of(here)]),
        claims: claimsByMember.of(here),
        ingresses: up.ingresses.of(key),
        accounts: up.serviceaccounts.of(key),
      }
    },
    (cluster) => [...up.namespaces.of(`${cluster}|`)].map(({ metadata }) => metadata.name ?? ''),
  )
}

/** Objects of both sides, by their indexes. */
function lookups({ upstream }: SyncerOptions, { byNamespace, byController, byPod, byReported }: Indexes) {
  return {
    upstreamIn: (resource, cluster, namespace) => upstream.byNamespace[resource].of(`${cluster}|${namespace}`),
    historyReportedAs: (cluster, namespace, name) => first(byReported.of(`${cluster}|${namespace}|${name}`)),
    downstreamIn: (resource, namespace) => byNamespace[resource].of(namespace),
    slicesWith: (namespace, pod) => byPod.of(`${namespace}/${pod}`),
    controlledBy: (resource, namespace, { kind, name }) => byController[resource].of(`${namespace}|${kind}/${name}`),
  } satisfies Partial<SyncContext>
}

/** What the steps of a reconcile ask of the queue. */
function questionsTo(queue: KeyQueue, deleted: Map<string, CachedObject>) {
  return {
    enqueue: (request) => queue.add(requestKey(request)),
    enqueueAfter: (request, ms) => queue.addAfter(requestKey(request), ms),
    copyDeleted: (request, copy) => void deleted.set(requestKey(request), copy),
  } satisfies Partial<SyncContext>
}

/** Whether a logical cluster has adopted the namespace of the member. */
function isAdoptedFrom({ member, upstream }: SyncerOptions, namespace: string): boolean {
  for (const _ of upstream.adoptedNamespaces.keysOf(`${member.name}/${namespace}`)) return true
  return false
}

/** What pods of a namespace need to reach the API of their logical cluster. */
function podContextOf(
  { member, upstream, apiAddress, nameserver: own }: SyncerOptions,
  { cluster, id, namespace }: { readonly cluster: string; readonly id: ClusterId; readonly namespace: string },
) {
  // The names that our nameserver knows lead to namespaces called ID-NAME. In an adopted namespace, pods go on with the
  // member's own DNS, which knows their neighbours by the name of the namespace there.
  const adopted = adoptedNamespace(upstream.informers.namespaces.store.get(keyFor({ cluster, name: namespace })))
  const nameserver = adopted?.member === member.name ? undefined : own
  return {
    namespace,
    audience: `${id}.${member.id}`,
    apiAddress,
    ...(member.annotationPrefixes && { annotationPrefixes: member.annotationPrefixes }),
    ...(nameserver !== undefined && { nameserver: { address: nameserver, domain: `${id}.${tenantZone}` } }),
  }
}

function first<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item
  return undefined
}
