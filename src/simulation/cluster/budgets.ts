// PodDisruptionBudgets: how many of their pods may be evicted now.
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import { keyOf, type Budget, type Pod } from './objects.ts'
import { hasEnded, isReady, numberOf, withCondition } from './pod-facts.ts'
import type { Simulation } from './simulation.ts'

/** An eviction that has not deleted its pod after this time is not counted any more. */
const evictionMs = 120_000

export function startBudgets(simulation: Simulation): void {
  const { pods, poddisruptionbudgets } = simulation.cache
  simulation.loop({
    name: 'disruption-controller',
    follow(enqueue) {
      poddisruptionbudgets.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      pods.onChange((after, before) => {
        const { namespace = '' } = (after ?? before)?.metadata ?? {}
        for (const budget of poddisruptionbudgets.inNamespace(namespace)) enqueue(keyOf(budget), 20)
      })
    },
    reconcile: async (key) => {
      const budget = poddisruptionbudgets.get(key)
      if (budget !== undefined && budget.metadata.deletionTimestamp === undefined) await writeStatus(simulation, budget)
    },
  })
}

async function writeStatus(simulation: Simulation, budget: Budget): Promise<void> {
  const { namespace = '', generation = 0 } = budget.metadata
  const { selector, minAvailable, maxUnavailable } = budget.spec ?? {}
  const matches = selectorFromObject(selector)
  const pods = simulation.cache.pods
    .inNamespace(namespace)
    .filter(({ metadata, status }) => !hasEnded(status?.phase) && matches.matches(metadata.labels ?? {}))
  const disrupted = stillDisrupted(budget, pods)
  const expected = expectedPods(simulation, pods)
  const desiredHealthy =
    maxUnavailable !== undefined
      ? Math.max(0, expected - numberOf(maxUnavailable, expected, 'up'))
      : numberOf(minAvailable ?? 1, expected, 'up')
  const isHealthy = (pod: Pod): boolean =>
    isReady(pod) && pod.metadata.deletionTimestamp === undefined && disrupted[pod.metadata.name ?? ''] === undefined
  const currentHealthy = pods.filter(isHealthy).length
  const disruptionsAllowed = expected === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy)
  const isAllowed = disruptionsAllowed > 0
  const condition = {
    type: 'DisruptionAllowed',
    status: isAllowed ? 'True' : 'False',
    reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: '',
    observedGeneration: generation,
  } as const
  const known = budget.status?.conditions ?? []
  const conditions = withCondition(known, condition, simulation.now())
  const counts = {
    observedGeneration: generation,
    expectedPods: expected,
    desiredHealthy,
    currentHealthy,
    disruptionsAllowed,
  }
  const isSame = Object.entries(counts).every(
    ([field, value]) => (budget.status as Record<string, unknown> | undefined)?.[field] === value,
  )
  const gone = Object.keys(budget.status?.disruptedPods ?? {}).filter((name) => disrupted[name] === undefined)
  if (isSame && gone.length === 0 && known.length > 0) return
  const removed = Object.fromEntries(gone.map((name) => [name, null]))
  await simulation.patchStatus('poddisruptionbudgets', budget, {
    ...counts,
    disruptedPods: { ...disrupted, ...removed },
    conditions,
  })
}

/** The evictions whose pods are not being deleted yet. */
function stillDisrupted({ status }: Budget, pods: readonly Pod[]): Record<string, string> {
  const waiting = new Set(
    pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name),
  )
  const entries = Object.entries(status?.disruptedPods ?? {})
  return Object.fromEntries(
    entries.filter(([name, since]) => waiting.has(name) && Date.now() - Date.parse(since) < evictionMs),
  )
}

/** How many pods the owners want to have. */
function expectedPods(simulation: Simulation, pods: readonly Pod[]): number {
  const owners = new Map<string, number>()
  let alone = 0
  for (const { metadata } of pods) {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
    const key = `${metadata.namespace ?? ''}/${owner?.name ?? ''}`
    const { replicasets, statefulsets, replicationcontrollers } = simulation.cache
    const set =
      owner?.kind === 'ReplicaSet'
        ? replicasets.get(key)
        : owner?.kind === 'StatefulSet'
          ? statefulsets.get(key)
          : owner?.kind === 'ReplicationController'
            ? replicationcontrollers.get(key)
            : undefined
    if (set === undefined) alone++
    else owners.set(owner?.uid ?? '', set.spec.replicas ?? 1)
  }
  return alone + [...owners.values()].reduce((sum, replicas) => sum + replicas, 0)
}
