// The controller of placement: one visit decides about one workload and writes the decision on it.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { systemClock, timestamp, type Clock } from '../../async/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '../../reconcile/index.ts'
import type { OperatorContext, OperatorController } from '../framework/operator-context.ts'
import { apply } from './apply.ts'
import { enqueueChanges } from './enqueue.ts'
import { observe } from './observe.ts'
import { PlacementInputs } from './placement-inputs.ts'
import { plan } from './plan.ts'
import { releaseGone, unknownMembers } from './release-gone.ts'
import { heldMessage } from './status.ts'
import { clusterOfWorkloadKey, parseWorkloadKey, type WorkloadRef } from './workload-key.ts'

export interface PlacementDeps {
  /** How long a copy keeps running after it takes no new traffic. Default 10. */
  readonly drainSeconds?: number
  /** How long a copy must serve before another one drains. Default 2: kube-proxy needs about 1 to follow. */
  readonly soakSeconds?: number
  readonly clock?: Clock
}

/** Places the workloads of all logical clusters on members. */
export function placementController(deps: PlacementDeps = {}): OperatorController {
  return {
    name: 'placement',
    async run(context, { signal, started }) {
      using inputs = new PlacementInputs(context)
      using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterOfWorkloadKey })
      await inputs.synced(signal)
      const end = enqueueChanges(inputs, (key) => queue.add(key))
      try {
        started()
        const reconcile = reconcilerOf(context, inputs, deps)
        await runController({ name: 'placement', queue, workers: 8, reconcile, log: context.log, signal })
      } finally {
        end()
      }
    },
  }
}

function reconcilerOf(
  context: OperatorContext,
  inputs: PlacementInputs,
  { drainSeconds = 10, soakSeconds = 2, clock = systemClock }: PlacementDeps,
): (key: string, signal: AbortSignal) => Promise<ReconcileResult> {
  /** By key of the workload: what its tenant was last told by an Event. */
  const told = new Map<string, string>()
  return async (key, signal) => {
    const ref = parseWorkloadKey(key)
    const workload = ref === undefined ? undefined : inputs.workload(ref)
    if (workload === undefined) told.delete(key)
    if (ref === undefined || workload === undefined) return {}
    if (await releaseRemovedMembers(ref, workload, { context, inputs }, signal)) return {}
    // Syncers finish a deletion: their finalizers say where the workload still is.
    if (workload.metadata.deletionTimestamp !== undefined) return {}
    const observed = observe(ref, workload, inputs)
    if (observed === undefined) return {}
    const nowMs = clock.now()
    const next = plan(observed, { nowMs, drainSeconds, soakSeconds })
    const client = context.virtual(`/clusters/${ref.cluster}`)
    const isReady = (member: string): boolean => inputs.isReady(member)
    const changes = { before: observed.placedOn, plan: next, told: told.get(key) }
    await apply(ref, workload, changes, { client, log: context.log, now: timestamp(nowMs), isReady }, signal)
    const reason = heldMessage(next.decision.held)
    if (reason === '') told.delete(key)
    else told.set(key, reason)
    return next.requeueAfterSeconds === undefined ? {} : { requeueAfterSeconds: next.requeueAfterSeconds }
  }
}

/** True if something was released: that change causes the next visit. */
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
