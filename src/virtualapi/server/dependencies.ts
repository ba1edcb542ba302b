// The dependencies of the stages, created once by createVirtualApi.
import type { Logger } from '#telemetry/index.ts'
import type { AuditSink } from '#virtualapi/request/request-audit.ts'
import type { Authenticator } from '#virtualapi/auth/authn/authenticator.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { Fairness } from '#virtualapi/flowcontrol/fairness.ts'
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'
import type { EventLoopShare } from '#virtualapi/flowcontrol/event-loop-share.ts'
import type { MemoryGuard } from './limits/memory-guard.ts'
import type { PassMonitor } from './limits/pass-monitor.ts'
import type { PeerConnections } from './peer-connections.ts'
import type { ServerMetrics } from './server-metrics.ts'

export interface ServerDependencies extends EndpointDependencies {
  readonly authenticator: Authenticator
  readonly fairness: Fairness
  readonly loopShare: EventLoopShare
  readonly passMonitor: PassMonitor
  readonly memoryGuard: MemoryGuard
  readonly log: Logger
  readonly metrics: ServerMetrics
  /** Takes the audit log; undefined if there is none. */
  readonly auditSink: AuditSink | undefined
  /** Absent: this process answers for all logical clusters. */
  readonly ownership?: ClusterOwnership
  /** Connections to the processes that own the others. */
  readonly peers?: PeerConnections
  /** Timeout of requests other than watches, log and exec, milliseconds. */
  readonly requestTimeoutMs: number
}
