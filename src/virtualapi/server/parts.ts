// What the stages work with: made once by createVirtualApi, then only read.
import type { Logger } from '../../telemetry/index.ts'
import type { AuditSink } from '../audit/index.ts'
import type { Authenticator } from '../authn/authenticator.ts'
import type { EndpointParts } from '../endpoints/parts.ts'
import type { Fairness } from '../flowcontrol/fairness.ts'
import type { LoopShare } from '../flowcontrol/loop-share.ts'
import type { ServerMetrics } from './server-metrics.ts'

export interface ServerParts extends EndpointParts {
  readonly authenticator: Authenticator
  readonly fairness: Fairness
  readonly loopShare: LoopShare
  readonly log: Logger
  readonly metrics: ServerMetrics
  /** Where a line of every request is written; none where nobody asked for it. */
  readonly auditSink: AuditSink | undefined
  /** Of requests other than watches, log and exec. Milliseconds. */
  readonly requestTimeoutMs: number
}
