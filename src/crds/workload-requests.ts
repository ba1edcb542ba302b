// The total requests of the pods of a workload.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { totalOfPod, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import { hasEnded, replicasOf, templateOf, valueAt } from './workload-kinds.ts'

const nano = 1_000_000_000n
const known = new WeakMap<object, Map<number | undefined, Amounts>>()

/**
 * The requests of a workload's pods and their number (`pods`). The pods that a rolling update adds for a while
 * (maxSurge) count, so that a rollout fits where the workload fits. A Job or pod that has ended requests nothing.
 * `replicas`: how many a member has; default: all. Computed once for each version of `workload`, which must not change.
 */
export function requestsOf(workload: { readonly kind: string }, replicas?: number): Amounts {
  const before = known.get(workload)?.get(replicas)
  if (before !== undefined) return before
  const template = templateOf(workload)
  const spec = isJsonObject(template) ? template['spec'] : undefined
  const count = hasEnded(workload)
    ? 0n
    : BigInt((replicas ?? podsOf(workload)) + surgeOf(workload, replicas ?? replicasOf(workload)))
  const requests = new Map<string, Quantity>([['pods', { nanos: count * nano, format: 'DecimalSI' }]])
  if (isJsonObject(spec))
    for (const [name, { nanos, format }] of totalOfPod(spec, 'requests'))
      requests.set(name, { nanos: nanos * count, format })
  const ofWorkload = known.get(workload) ?? new Map<number | undefined, Amounts>()
  known.set(workload, ofWorkload.set(replicas, requests))
  return requests
}

/** What one pod of the workload requests. */
export function podRequestsOf(workload: { readonly kind: string }): Amounts {
  const template = templateOf(workload)
  const spec = isJsonObject(template) ? template['spec'] : undefined
  const requests = isJsonObject(spec) ? totalOfPod(spec, 'requests') : new Map<string, Quantity>()
  return requests.set('pods', { nanos: nano, format: 'DecimalSI' })
}

/** How many pods run at the same time; for a Job, its parallelism. */
function podsOf(workload: { readonly kind: string }): number {
  const parallelism = valueAt(workload, ['spec', 'parallelism'])
  return typeof parallelism === 'number' ? parallelism : replicasOf(workload)
}

/**
 * How many pods more than its replicas a Deployment has during a rolling update; a percentage is rounded up, and there
 * are never more new pods than replicas.
 */
export function surgeOf(workload: { readonly kind: string }, replicas: number): number {
  const { strategy } = ((workload as { spec?: unknown }).spec ?? {}) as {
    strategy?: { type?: string; rollingUpdate?: { maxSurge?: number | string } }
  }
  if (strategy?.type !== 'RollingUpdate') return 0
  const surge = strategy.rollingUpdate?.maxSurge ?? 0
  const percent = typeof surge === 'number' ? surge : Number.parseInt(surge, 10)
  const pods = typeof surge === 'number' ? surge : Math.ceil((replicas * percent) / 100)
  return Number.isNaN(pods) ? 0 : Math.min(pods, replicas)
}
