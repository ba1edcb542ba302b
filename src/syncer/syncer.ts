// The syncer of one member: copies what is placed there into the member, and reports what the member makes of it upstream.
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import {
  createInformer,
  keyFor,
  namespaceKeyOf,
  ObjectIndex,
  withoutManagedFields,
  type DeepReadonly,
  type Informer,
  type KubeClient,
} from '#client/index.ts'
import {
  isPlaceable,
  managedLabel,
  parseDownstreamNamespace,
  tenantZone,
  type MemberExports,
  type SuspendedDeletions,
  type SyncFailureReport,
} from '#crds/index.ts'
import { createKeyQueue, runController, type KeyQueue, type ReconcileResult } from '#reconcile/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { DeletionGuard } from './context/deletion-guard.ts'
import { visitLeftover, visitNamespace } from './down/namespace.ts'
import { visitObject } from './down/object.ts'
import { reportMissingClass } from './report/missing-class.ts'
import { startExportedApis, type ExportedApis } from './exports/exported-apis.ts'
import { EventBudget } from './context/event-budget.ts'
import { visitClaimOwner } from './down/claims-with-data.ts'
import { SyncFailures } from './context/sync-failures.ts'
import { visitStatus } from './report/member-status.ts'
import { GatewayPorts } from './context/gateway-ports.ts'
import { PassingReports } from './context/passing-reports.ts'
import { gvrs, type ResourceName } from './context/resources.ts'
import {
  clusterOfVisit,
  downstreamNamespaceOf,
  downstreamObject,
  isUrgentVisit,
  locatorOf,
  parseVisit,
  upstreamObject,
  visitKey,
  type SyncContext,
  type SyncedMember,
  type Visit,
} from './context/sync-context.ts'
import { syncedKindOf, type SyncedKind } from './rules/synced-kinds.ts'
import { aboutStatus, aboutVisit, tellingFailures } from './report/tell-failure.ts'
import type { TriggerContext } from './context/trigger-context.ts'
import { listen } from './triggers/triggers.ts'
import { podsIn, reportEndpoints, visitRemoteSlice, visitSlice } from './down/endpoint-slices.ts'
import { events, onlyOurs, visitEvent } from './up/events.ts'
import { reportedName, visitHistory } from './up/history.ts'
import { madeKindOf, passOnDeletionOfMade, visitMade, type MadeKind } from './up/made.ts'
import { cachedNode, nodesGvr, visitNode } from './up/nodes.ts'
import { passOnDeletionOfPod, visitPod } from './up/pods.ts'
import { visitSpec } from './up/spec.ts'
import { forEachResource, inMember, type Upstream } from './context/upstream.ts'
import type { NodeUp } from './transform/node-up.ts'
import { Views } from './context/views.ts'

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
  /** Number of visits that run at the same time. Default 8. */
  readonly workers?: number
}

export interface Syncer extends AsyncDisposable {
  /** Resolves when the caches of both sides are complete and the first visits are queued. */
  synced(signal: AbortSignal): Promise<void>
  /** Where it deletes nothing, because too much is not known upstream any more. */
  suspendedDeletions(): readonly SuspendedDeletions[]
  /** The objects of tenants that it cannot sync; undefined if there are none. */
  failures(): SyncFailureReport | undefined
}

/** Starts a syncer. It writes nothing before the caches of both sides are complete, and ends with its signal or disposal. */
export function startSyncer(options: SyncerOptions): Syncer {
  const life = childSignal(options.signal)
  const log = options.log.with({ member: options.member.name })
  const caches = downstreamCaches(options.downstream, log, life.signal)
  const queue = createKeyQueue({ maxMs: 10_000, fairnessKey: clusterOfVisit, isUrgent: isUrgentVisit })
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

/** Events carry no label of ours: those of other namespaces are kept as names alone. */
function memberEvents(client: KubeClient, log: Logger, signal: AbortSignal): Informer<KubeObject> {
  const isOurs = (namespace: string): boolean => parseDownstreamNamespace(namespace) !== undefined
  return createInformer<KubeObject>({ client, gvr: events, transform: onlyOurs(isOurs), backoff, log, signal })
}

/**
 * Resolves when the caches of the member are complete. A member that joined before a kind was synced does not let us read it:
 * objects of this kind wait until the member has joined again, and the others do not wait for them.
 */
async function memberSynced({ downstream, log, signal }: SyncerOptions, caches: Caches): Promise<void> {
  const synced = async (resource: ResourceName): Promise<void> => {
    try {
      await downstream.list(gvrs[resource], { limit: 1, metadataOnly: true, signal })
    } catch (error) {
      if (isStatusError(error, 'Forbidden')) {
        log.warn('the member must be joined again before this kind is synced', { resource })
        return
      }
      // Whatever it is, the informer tries again.
    }
    await caches[resource].synced(signal)
  }
  await Promise.all((Object.keys(caches) as ResourceName[]).map(synced))
}

async function run(
  options: SyncerOptions & { readonly guard: DeletionGuard; readonly failures: SyncFailures },
  caches: Caches,
  queue: KeyQueue,
  started: () => void,
): Promise<void> {
  const { member, upstream, downstream, signal, log, workers = 8 } = options
  await Promise.all([upstream.synced(signal), memberSynced(options, caches)])
  const clock = options.clock ?? systemClock
  const up = upstream.byNamespace
  const down = forEachResource((resource) => new ObjectIndex(caches[resource], (key) => [namespaceKeyOf(key)]))
  const upstreamIn = (resource: ResourceName, cluster: string, namespace: string): Iterable<DeepReadonly<KubeObject>> =>
    up[resource].of(`${cluster}|${namespace}`)
  const reported = new ObjectIndex(upstream.informers.replicasets, (key, replicaSet) => {
    const name = reportedName(replicaSet, member.name)
    return name === undefined ? [] : [`${namespaceKeyOf(key)}|${name}`]
  })
  const slicesOf = new ObjectIndex(caches.endpointslices, (key, slice) =>
    podsIn(slice).map((name) => `${namespaceKeyOf(key)}/${name}`),
  )
  const controlled = {
    pods: byController(caches.pods),
    replicasets: byController(caches.replicasets),
    jobs: byController(caches.jobs),
    controllerrevisions: byController(caches.controllerrevisions),
  }
  const views = new Views(
    member,
    (cluster, namespace) => {
      const here = inMember(`${cluster}|${namespace}`, member.name)
      return {
        workloads: upstream.workloadsByMember.flatMap((index) => [...index.of(here)]),
        claims: upstream.claimsByMember.of(here),
        ingresses: upstreamIn('ingresses', cluster, namespace),
        accounts: upstreamIn('serviceaccounts', cluster, namespace),
      }
    },
    (cluster) => [...up.namespaces.of(`${cluster}|`)].map(({ metadata }) => metadata.name ?? ''),
  )
  const deleted = new Map<string, DeepReadonly<KubeObject>>()
  // Not waited for: a member that refuses Events still gets its workloads.
  await using eventInformer = memberEvents(downstream, log, signal)
  // Nor for its nodes: they are only shown.
  await using nodeInformer = createInformer<NodeUp>({
    ...{ client: downstream, gvr: nodesGvr, transform: cachedNode, backoff, log, signal },
  })
  let exported: ExportedApis | undefined
  const gateway = member.serviceNetwork === 'Gateway' ? gatewayPorts(caches) : undefined
  const context: TriggerContext = {
    member,
    ...(gateway && { gateway }),
    upstream,
    downstream,
    caches,
    clock,
    passing: new PassingReports(clock),
    log,
    guard: options.guard,
    failures: options.failures,
    eventBudget: new EventBudget(),
    views,
    events: eventInformer,
    nodes: nodeInformer,
    memberEvent: (namespace, name) => eventInformer.store.get(keyFor({ namespace, name })),
    view: (cluster, namespace) => views.of(cluster, namespace),
    namespacesOf: (cluster) => views.namespacesOf(cluster),
    presentIn: (cluster) => views.presentIn(cluster),
    upstreamIn,
    historyReportedAs: (cluster, namespace, name) => first(reported.of(`${cluster}|${namespace}|${name}`)),
    downstreamIn: (resource, namespace) => down[resource].of(namespace),
    slicesWith: (namespace, pod) => slicesOf.of(`${namespace}/${pod}`),
    controlledBy: (resource, namespace, { kind, name }) => controlled[resource].of(`${namespace}|${kind}/${name}`),
    podContext: (_cluster: string, id: ClusterId, namespace: string) => ({
      namespace,
      audience: `${id}.${member.id}`,
      apiAddress: options.apiAddress,
      ...(member.annotationPrefixes && { annotationPrefixes: member.annotationPrefixes }),
      ...(options.nameserver !== undefined && {
        nameserver: { address: options.nameserver, domain: `${id}.${tenantZone}` },
      }),
    }),
    hasExported: (cluster, namespace) => exported?.isIn(cluster, namespace) ?? false,
    enqueue: (visit) => queue.add(visitKey(visit)),
    enqueueAfter: (visit, ms) => queue.addAfter(visitKey(visit), ms),
    copyDeleted: (visit, copy) => void deleted.set(visitKey(visit), copy),
  }
  // Before the first visit: a namespace must not be deleted because its custom resources are not known yet.
  if (options.exports) exported = await startExportedApis(context, options.exports, signal)
  await using _exported = exported
  const end = listen(context)
  started()
  try {
    await runController({
      name: 'syncer',
      queue,
      workers,
      log,
      signal,
      reconcile: async (key, life) => {
        const visit = parseVisit(key)
        return visit.kind === 'event'
          ? await visitEvent(context, visit, life)
          : await visitOne(context, key, deleted, life)
      },
    })
  } finally {
    end()
    reported[Symbol.dispose]()
    slicesOf[Symbol.dispose]()
    for (const index of [...Object.values(down), ...Object.values(controlled)]) index[Symbol.dispose]()
  }
}

/** Objects by `NAMESPACE|KIND/NAME` of their controller. */
function byController(informer: Informer<KubeObject>): ObjectIndex {
  return new ObjectIndex(informer, (key, { metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
    return owner === undefined ? [] : [`${namespaceKeyOf(key)}|${owner.kind}/${owner.name}`]
  })
}

/** With the ports that the gateway has by now. */
function gatewayPorts({ endpointslices }: Caches): GatewayPorts {
  const ports = new GatewayPorts(() => performance.now())
  for (const slice of endpointslices.store.list()) ports.load(slice)
  return ports
}

function first<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item
  return undefined
}

async function visitOne(
  context: SyncContext,
  key: string,
  deleted: Map<string, DeepReadonly<KubeObject>>,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const visit = parseVisit(key)
  const copy = deleted.get(key)
  if (copy !== undefined) {
    const made = madeKindOfVisit(visit)
    if (made === undefined) await passOnDeletionOfPod(context, visit, copy, signal)
    else await passOnDeletionOfMade(context, made, visit, copy, signal)
    deleted.delete(key)
  }
  await visitKind(context, visit, signal)
  return undefined
}

const madePrefix = 'made:'

function madeKindOfVisit({ kind }: Visit): MadeKind | undefined {
  return kind.startsWith(madePrefix) ? madeKindOf(kind.slice(madePrefix.length)) : undefined
}

async function visitKind(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const kind = syncedKindOf(visit.kind)
  if (kind !== undefined) return visitCopied(context, kind, visit, signal)
  if (visit.kind === 'pod') await visitTenantsPod(context, visit, signal)
  await tellingFailures(context, aboutVisit(context, visit), () => visitOther(context, visit, signal), signal)
}

/** What is neither a copy of a tenant's object nor an Event. */
async function visitOther(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  switch (visit.kind) {
    case 'namespace':
      return visitNamespace(context, visit, signal)
    case 'leftover':
      return visitLeftover(context, visit, signal)
    case 'history':
      return visitHistory(context, visit, signal)
    case 'pod':
      return visitPod(context, visit, signal)
    case 'node':
      return visitNode(context, visit, signal)
    case 'slice':
      return visitSlice(context, visit, signal)
    case 'remoteSlice':
      return visitRemoteSlice(context, visit, signal)
    default: {
      const made = madeKindOfVisit(visit)
      if (made !== undefined) await visitMade(context, made, visit, signal)
    }
  }
}

async function visitCopied(context: SyncContext, kind: SyncedKind, visit: Visit, signal: AbortSignal): Promise<void> {
  const copying = visitObject(context, kind, visit, signal)
  // While the member refuses a change, what it makes of the copy that it has is still reported.
  const copied = kind.status === undefined ? await copying : await copying.catch(() => undefined)
  await tellingFailures(
    context,
    aboutStatus(kind.resource, visit),
    () => reportCopied(context, kind, visit, copied, signal),
    signal,
  )
  await copying
}

async function reportCopied(
  context: SyncContext,
  kind: SyncedKind,
  visit: Visit,
  copied: DeepReadonly<KubeObject> | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (kind.resource === 'services') return reportEndpoints(context, visit, copied !== undefined, signal)
  if (copied !== undefined) await visitSpec(context, kind, visit, signal)
  if (copied !== undefined && kind.resource === 'persistentvolumeclaims') await visitClaimOwner(context, visit, signal)
  if (copied !== undefined && kind.resource === 'ingresses') await reportMissingClass(context, copied, visit, signal)
  if (kind.status) await visitStatus(context, { ...visit, resource: kind.resource }, kind.status, signal)
}

/** A pod that its tenant made is copied down like any workload, besides what is done for every pod. */
async function visitTenantsPod(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const kind = syncedKindOf('pods')
  const pod = upstreamObject(context, 'pods', visit)
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const live = memberNamespace && downstreamObject(context, 'pods', memberNamespace, visit.name)
  const isTenants = pod === undefined ? locatorOf(live || undefined) !== undefined : isPlaceable(pod)
  if (kind !== undefined && isTenants) await visitObject(context, kind, visit, signal)
}
