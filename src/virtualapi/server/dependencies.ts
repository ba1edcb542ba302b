// The dependencies of the stages, created once by createVirtualApi.
import type { Logger } from '#telemetry/index.ts'
import type { SharedApis } from '#reconcile/object-graph/index.ts'
import type { ClusterAudits } from '#virtualapi/audit/index.ts'
import type { AuditLog } from '#virtualapi/request/request-audit.ts'
import type { Authenticator } from '#virtualapi/auth/authn/authenticator.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { UserActivity } from '#virtualapi/background/activity/index.ts'
import type { Fairness } from '#virtualapi/flowcontrol/fairness.ts'
import type { SubtreeFlow } from '#virtualapi/hierarchy/subtree-flow.ts'
import type { PlainCluster } from '#virtualapi/request/plain-cluster.ts'
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'
import type { UsageMeter } from '#virtualapi/flowcontrol/usage-meter.ts'
import type { EventLoopShare } from '#virtualapi/flowcontrol/event-loop-share.ts'
import type { MemoryGuard } from './limits/memory-guard.ts'
import type { PassMonitor } from './limits/pass-monitor.ts'
import type { PeerConnections } from './peer-connections.ts'
import type { ServerMetrics } from './server-metrics.ts'

export interface ServerDependencies extends EndpointDependencies {
  readonly authenticator: Authenticator
  /** APIExports and their consumers. */
  readonly sharing: SharedApis
  readonly fairness: Fairness
  /** Limits of watches and requests per second. */
  readonly subtreeFlow: SubtreeFlow
  /** Absent: no rows of usage are kept. */
  readonly usageMeter?: UsageMeter | undefined
  /** Takes the requests of users of logical clusters that have rules of sleep. */
  readonly activity: UserActivity
  readonly loopShare: EventLoopShare
  readonly passMonitor: PassMonitor
  readonly memoryGuard: MemoryGuard
  readonly log: Logger
  readonly metrics: ServerMetrics
  /** The audit log of the installation; undefined if there is none. */
  readonly auditLog: AuditLog | undefined
  /** The audit logs of logical clusters; absent: there are none. */
  readonly clusterAudits?: ClusterAudits | undefined
  /** Which process owns which logical cluster; absent: this process answers for all of them. */
  readonly ownership?: ClusterOwnership
  /** Connections to the processes that own the other logical clusters. */
  readonly peers?: PeerConnections
  /** The only cluster of this server; absent: it serves logical clusters. */
  readonly plain?: PlainCluster
  /** Timeout of requests other than watches, log and exec, milliseconds. */
  readonly requestTimeoutMs: number
}
