// The controller of placement: one reconcile decides about one workload and writes the decision on it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { clusterInKey, type DeepReadonly, type KubeClient } from '#client/index.ts'
import type { UsageHistory } from '#crds/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import { limitExceededReason } from '#placement/index.ts'
import type { MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { apply, isRefusedWrite } from './apply.ts'
import { enqueueChanges } from './enqueue.ts'
import { observe } from './observe.ts'
import { clusterOfImportedKey, followImported, placeImported } from './imported-objects.ts'
import { lossEvents, moveBegun } from './moves.ts'
import { PlacementInputs } from './placement-inputs.ts'
import { followPlacements, PlacementReports, reportTo, writePlacementStatus } from './placement-status.ts'
import { plan } from './plan.ts'
import { recordPlaced, requestedByClusters } from './record-placed.ts'
import { runRebalancing } from './rebalancing.ts'
import { releaseGone, unknownMembers } from './release-gone.ts'
import { heldMessage } from './status.ts'
import { followVolumes, reconcileVolumeWish } from './volume-wishes.ts'
import { followClaims, reconcileClaim } from './waiting-claims.ts'
import { clusterOfWorkloadKey, parseWorkloadKey, type WorkloadRef } from './workload-key.ts'

export interface PlacementDeps {
  /** How long a copy keeps running after it takes no new traffic. Default 10. */
  readonly drainSeconds?: number
  /** How long a member that a workload has left forwards requests. Default 60. */
  readonly forwardSeconds?: number
  /** How long a copy must serve before another one drains. Default 2: kube-proxy needs about 1 to follow. */
  readonly soakSeconds?: number
  /** How often members are balanced, where an admin turned that on. Default 60. */
  readonly rebalanceSeconds?: number
  readonly clock?: Clock
  /** Keeps rows of what logical clusters request in members; absent: none are kept. */
  readonly usageHistory?: (client: KubeClient) => UsageHistory
  /** The APIs that members export; absent: their objects are not placed. */
  readonly apis?: MemberApis
}

/** Places the workloads of all logical clusters on members. */
export function placementController(deps: PlacementDeps = {}): OperatorController {
  return {
    name: 'placement',
    async run(context, { signal, started }) {
      using inputs = new PlacementInputs(context)
      using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterOfWorkloadKey })
      using statusQueue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
      using importedQueue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterOfImportedKey })
      using claimQueue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
      using volumeQueue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
      const reports = new PlacementReports(reportTo(statusQueue))
      await inputs.synced(signal)
      const imported = deps.apis && {
        ...{ context, inputs, apis: deps.apis, clock: deps.clock ?? systemClock, queue: importedQueue, signal },
        times: { drainSeconds: 0, soakSeconds: deps.soakSeconds ?? 2 },
      }
      const placeObject = async (key: string, life: AbortSignal): Promise<ReconcileResult> =>
        imported === undefined ? {} : placeImported(key, imported, life)
      const ends = [
        ...(imported ? [followImported(imported)] : []),
        enqueueChanges(inputs, (key) => queue.add(key)),
        followPlacements(inputs, statusQueue),
        followClaims(inputs, claimQueue),
        followVolumes(inputs, volumeQueue),
      ]
      try {
        started()
        const { log, metrics } = context
        if (metrics !== undefined) metrics.requested = () => requestedByClusters(inputs)
        const reconcile = reconcilerOf(context, inputs, reports, deps)
        const parts = { context, inputs, reports, clock: deps.clock ?? systemClock }
        const writeStatus = (key: string, signal: AbortSignal): Promise<ReconcileResult> =>
          writePlacementStatus(key, parts, signal)
        const tellOfClaim = (key: string, signal: AbortSignal): Promise<ReconcileResult> =>
          reconcileClaim(key, parts, signal)
        const balancing = { log, everyMs: (deps.rebalanceSeconds ?? 60) * 1000, clock: parts.clock }
        await Promise.all([
          recordPlaced(
            inputs,
            { client: context.clusters, history: deps.usageHistory?.(context.clusters), clock: parts.clock, log },
            signal,
          ),
          runRebalancing(inputs, (key) => queue.add(key), balancing, signal),
          runController({
            name: 'volume-wishes',
            queue: volumeQueue,
            workers: 4,
            reconcile: (key, life) => reconcileVolumeWish(key, { ...context, inputs }, life),
            log,
            signal,
          }),
          runController({ name: 'waiting-claims', queue: claimQueue, workers: 2, reconcile: tellOfClaim, log, signal }),
          runController({
            name: 'imported-objects',
            queue: importedQueue,
            workers: 4,
            reconcile: placeObject,
            log,
            signal,
          }),
          runController({ name: 'placement', queue, workers: 8, reconcile, log, signal }),
          runController({
            name: 'placement-status',
            queue: statusQueue,
            workers: 2,
            reconcile: writeStatus,
            log,
            signal,
          }),
        ])
      } finally {
        for (const end of ends) end()
        context.metrics?.heldWorkloads.set(0)
        if (context.metrics !== undefined) context.metrics.requested = undefined
      }
    },
  }
}

/** How often a workload that waits for a limit looks for room, if no change has woken it. */
const limitRetrySeconds = 30

function reconcilerOf(
  context: OperatorContext,
  inputs: PlacementInputs,
  reports: PlacementReports,
  { drainSeconds = 10, soakSeconds = 2, forwardSeconds = 60, clock = systemClock }: PlacementDeps,
): (key: string, signal: AbortSignal) => Promise<ReconcileResult> {
  /** By key of the workload: what its tenant was last told by an Event. */
  const told = new Map<string, string>()
  const tell = (key: string, reason: string): void => {
    if (reason === '') told.delete(key)
    else told.set(key, reason)
    context.metrics?.heldWorkloads.set(told.size)
  }
  const reconcile = async (key: string, signal: AbortSignal): Promise<ReconcileResult> => {
    const ref = parseWorkloadKey(key)
    const workload = ref === undefined ? undefined : inputs.workload(ref)
    if (workload === undefined) {
      tell(key, '')
      reports.forget(key)
      inputs.placedLimits.noteWaiting(key, '', false)
    }
    if (ref === undefined || workload === undefined) return {}
    if (await releaseRemovedMembers(ref, workload, { context, inputs }, signal)) return {}
    // Syncers finish a deletion: their finalizers say where the workload still is.
    if (workload.metadata.deletionTimestamp !== undefined) return {}
    const nowMs = clock.now()
    const observed = observe(ref, workload, inputs, nowMs)
    if (observed === undefined) return {}
    const next = plan(observed, { nowMs, drainSeconds, soakSeconds, forwardSeconds })
    const isOverLimit = next.decision.held.some(({ reason }) => reason === limitExceededReason)
    inputs.placedLimits.noteWaiting(key, ref.cluster, isOverLimit)
    reports.note(key, observed.choice.placementKey, next.decision)
    const client = context.virtual(`/clusters/${ref.cluster}`)
    const isReady = (member: string): boolean => inputs.isReady(member)
    const move = moveBegun(observed.placedOn, next.placedOn, observed.choice)
    const again = next.placedOn === observed.placedOn ? undefined : inputs.dividedAgain.get(key)
    const asides = [
      ...lossEvents(observed.placedOn, next.placedOn, observed.choice, nowMs),
      ...(again === undefined ? [] : [{ reason: 'Rebalanced', message: again }]),
    ]
    const changes = { before: observed.placedOn, plan: next, ...(move && { move }), asides, told: told.get(key) }
    inputs.usage.assume(key, next.placedOn, workload)
    try {
      await apply({ ref, workload }, changes, { client, log: context.log, now: timestamp(nowMs), isReady }, signal)
    } catch (error) {
      if (isRefusedWrite(error)) inputs.usage.forget(key, inputs.workload(ref))
      throw error
    }
    const reason = heldMessage(next.decision.held)
    tell(key, reason)
    const { requeueAfterSeconds = Infinity } = next
    const seconds = Math.min(requeueAfterSeconds, isOverLimit ? limitRetrySeconds : Infinity)
    return seconds === Infinity ? {} : { requeueAfterSeconds: seconds }
  }
  return async (key, signal) => {
    const [begins, again] = [inputs.rebalancing.get(key), inputs.dividedAgain.get(key)]
    const result = await reconcile(key, signal)
    // The move was begun, or is not possible any more: it is not tried again before members are compared again.
    if (begins !== undefined && inputs.rebalancing.get(key) === begins) inputs.rebalancing.delete(key)
    if (inputs.dividedAgain.get(key) === again) inputs.dividedAgain.delete(key)
    return result
  }
}

/** True if something was released: that change causes the next reconcile. */
async function releaseRemovedMembers(
  { cluster, namespace, name }: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  { context, inputs }: { readonly context: OperatorContext; readonly inputs: PlacementInputs },
  signal: AbortSignal,
): Promise<boolean> {
  const members = unknownMembers(workload, (member) => inputs.isKnown(member))
  if (members.length === 0) return false
  const { clusters, virtual, log } = context
  const gone = await releaseGone({ clusters, client: virtual(`/clusters/${cluster}`), workload, members, signal })
  if (gone.length > 0) log.warn('released a workload from removed members', { cluster, namespace, name, members: gone })
  return gone.length > 0
}
