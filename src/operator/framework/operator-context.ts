// The contract between the operator and its controllers, with its metrics. No label of a metric names a member, an
// object or, except for the 50 largest, a logical cluster, to bound the number of series.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { KubeClient, SharedInformers } from '#client/index.ts'
import type { MemberDialer } from '#client/member/index.ts'
import { rankedGauges, type Gauge, type Logger, type Measured, type Metrics } from '#telemetry/index.ts'

export interface ClusterUrls {
  /** The `server` of a kubeconfig for the logical cluster. */
  readonly url: string
  /** An address of the same API that does not pass through the host's API server; absent if there is none. */
  readonly directURL?: string
}

/** Issues what kubeconfigs for logical clusters need. */
export interface CredentialIssuer {
  /** PEM certificate of the authority that signed the server's certificate. */
  readonly servingCa: string
  /** A client certificate, valid in the logical cluster with the id `realm` only. */
  issueClientCertificate(request: {
    readonly commonName: string
    readonly organizations: readonly string[]
    readonly realm: ClusterId
    readonly days: number
  }): Promise<{ readonly certificate: string; readonly key: string }>
}

export interface OperatorContext {
  /** The API with LogicalClusters, MemberClusters and Placements: the host's, or that of logical cluster `root`. */
  readonly clusters: KubeClient
  /** A client of the virtual API server with a base path: `/clusters/*` or `/clusters/NAME`. */
  readonly virtual: (basePath: string) => KubeClient
  /** The addresses of the logical cluster with this name. */
  readonly urls: (name: string) => ClusterUrls
  readonly issuer: CredentialIssuer
  /** Opens connections to members in pull mode. Absent: such members are not reached. */
  readonly dialer?: MemberDialer
  /** The directory below which SnapshotStores with `file` are. Absent: there is none. */
  readonly snapshotDirectory?: string
  /** Informers over `clusters`. */
  readonly informers: SharedInformers
  /** Informers over `virtual('/clusters/*')`, all logical clusters. Shared by placement, members and syncers. */
  readonly tenantInformers: SharedInformers
  readonly log: Logger
  /** Absent: nothing is counted. */
  readonly metrics?: OperatorMetrics
}

export interface OperatorController {
  readonly name: string
  /**
   * Runs until the signal aborts; resolves when all its work has ended. Calls `started` when it has its first data and
   * works.
   */
  run(context: OperatorContext, life: { readonly signal: AbortSignal; readonly started: () => void }): Promise<void>
}

interface OperatorMetrics {
  /** MemberClusters by the status of their condition Ready: label `ready`. */
  readonly members: Gauge
  /** Workloads with a copy that is held back. */
  readonly heldWorkloads: Gauge
  /** What placed workloads of each logical cluster request; undefined in a process that stands by. */
  requested: (() => Iterable<Measured<RequestedMeasure>>) | undefined
}

/** CPUs, bytes, pods. */
type RequestedMeasure = 'cpu' | 'memory' | 'pods'

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
  const registered: OperatorMetrics = { members, heldWorkloads, requested: undefined }
  rankedGauges<RequestedMeasure>(
    metrics,
    {
      cpu: { name: 'kcp_usage_requested_cpu_cores', help: 'CPUs that placed workloads request' },
      memory: { name: 'kcp_usage_requested_memory_bytes', help: 'Memory that placed workloads request' },
      pods: { name: 'kcp_usage_requested_pods', help: 'Pods of placed workloads' },
    },
    () => registered.requested?.() ?? [],
  )
  return registered
}
