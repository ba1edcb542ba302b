// ReplicaSets and ReplicationControllers: as many pods as wanted.
import { isStatusError } from '#apimachinery/status/index.ts'
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import { keyOf, type Condition, type Pod, type ReplicaSet } from '#simulation/cluster/objects.ts'
import { countAvailable, isActive, isReady } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { createPod, deletePod, followOwnedPods, inOrderOfDeletion } from './pod-control.ts'

type Resource = 'replicasets' | 'replicationcontrollers'
const kinds = {
  replicasets: { kind: 'ReplicaSet', by: 'replicaset-controller' },
  replicationcontrollers: { kind: 'ReplicationController', by: 'replication-controller' },
} as const

/** How many pods one reconcile makes or deletes, so that a large ReplicaSet does not block the others. */
const batch = 50

/** Starts the controller of one of the two resources. */
export function startReplicaSets(simulation: Simulation, resource: Resource): void {
  const { kind, by } = kinds[resource]
  simulation.loop({
    name: by,
    follow(enqueue) {
      simulation.cache[resource].onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      followOwnedPods(simulation, kind, enqueue)
    },
    reconcile: async (key) => {
      const set = simulation.cache[resource].get(key)
      if (set === undefined || set.metadata.deletionTimestamp !== undefined) return undefined
      return await reconcileSet(simulation, resource, set)
    },
  })
}

async function reconcileSet(
  simulation: Simulation,
  resource: Resource,
  set: ReplicaSet,
): Promise<ReconcileResult | undefined> {
  const { by } = kinds[resource]
  const active = simulation.cache.pods.controlledBy(set.metadata.uid ?? '').filter(isActive)
  const missing = (set.spec.replicas ?? 1) - active.length
  let failure: unknown
  try {
    if (missing > 0)
      for (let i = 0; i < Math.min(missing, batch); i++) await createPod(simulation, set, set.spec.template, { by })
    const surplus = inOrderOfDeletion(active).slice(0, Math.min(Math.max(0, -missing), batch))
    for (const pod of surplus) await deletePod(simulation, set, pod, by)
  } catch (error) {
    failure = error
  }
  const again = await writeStatus(simulation, resource, { set, failure })
  if (failure !== undefined) throw failure as Error
  return Math.abs(missing) > batch ? { requeueAfterSeconds: 0 } : again
}

async function writeStatus(
  simulation: Simulation,
  resource: Resource,
  { set, failure }: { readonly set: ReplicaSet; readonly failure: unknown },
): Promise<ReconcileResult | undefined> {
  const active = simulation.cache.pods.controlledBy(set.metadata.uid ?? '').filter(isActive)
  const { available, again } = countAvailable(active, set.spec.minReadySeconds)
  const status = {
    replicas: active.length,
    fullyLabeledReplicas: active.filter((pod) => hasLabels(pod, set.spec.template.metadata?.labels)).length,
    readyReplicas: active.filter(isReady).length,
    availableReplicas: available,
    observedGeneration: set.metadata.generation ?? 0,
    ...conditionsOf(set, failure, simulation.now()),
  }
  if (!isSameStatus(set.status, status)) await simulation.patchStatus(resource, set, status)
  return again
}

function hasLabels({ metadata }: Pod, labels: Readonly<Record<string, string>> = {}): boolean {
  return selectorFromObject({ matchLabels: { ...labels } }).matches(metadata.labels ?? {})
}

function conditionsOf(
  { status }: ReplicaSet,
  failure: unknown,
  now: string,
): { conditions?: readonly Condition[] | null } {
  const before = status?.conditions ?? []
  const known = before.find(({ type }) => type === 'ReplicaFailure')
  const others = before.filter((one) => one !== known)
  if (!isStatusError(failure)) return known === undefined ? {} : { conditions: others.length === 0 ? null : others }
  // Without the random end of its name, the refusal of each pod is the same: the status stays, and nothing loops.
  const message = failure.message.replaceAll(/-[a-z0-9]{5}(?=")/g, '-')
  if (known?.message === message) return {}
  const reason = 'FailedCreate'
  return {
    conditions: [...others, { type: 'ReplicaFailure', status: 'True', reason, message, lastTransitionTime: now }],
  }
}

/** Whether the fields to be written are in the status already; the server leaves out counts of 0. */
export function isSameStatus(status: object | undefined, wanted: Readonly<Record<string, unknown>>): boolean {
  const known = (status ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(wanted).every(([field, value]) => {
    const is = known[field]
    return (
      is === value ||
      (is === undefined && (value === 0 || value === null)) ||
      JSON.stringify(is) === JSON.stringify(value)
    )
  })
}
