// Metrics of the operator. No label names a member, a logical cluster or an object, to bound the number of series.
import type { Gauge, Metrics } from '#telemetry/index.ts'

export interface OperatorMetrics {
  /** MemberClusters by the status of their condition Ready: label `ready`. */
  readonly members: Gauge
  /** Workloads with a copy that is held back. */
  readonly heldWorkloads: Gauge
}

/** Registers the operator's metrics, all 0. A process that stands by keeps them so. */
export function operatorMetrics(metrics: Pick<Metrics, 'gauge'>): OperatorMetrics {
  const members = metrics.gauge({
    name: 'kcp_members',
    help: 'MemberClusters by the status of their condition Ready',
    labels: ['ready'],
  })
  for (const ready of ['True', 'False', 'Unknown']) members.set(0, { ready })
  const heldWorkloads = metrics.gauge({
    name: 'kcp_held_workloads',
    help: 'Workloads that are held, because no suitable member cluster can take a copy',
  })
  heldWorkloads.set(0)
  return { members, heldWorkloads }
}
